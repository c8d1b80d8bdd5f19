"""Kernels that the tests share, written by hand."""

HEAD = ".version 7.0\n.target sm_80\n.address_size 64\n"


def entry(name, params, body, head=HEAD, directives=""):
    """A module with one kernel."""
    return f"{head}.visible .entry {name}({params}) {directives}\n{{\n{body}\n}}\n"


#: The number of this thread in the grid, in %i, and the offset of element %i of 4 bytes in %o.
INDEX = """
    .reg .b32 %i, %c, %n, %t;
    .reg .b64 %o;
    mov.u32 %c, %ctaid.x;
    mov.u32 %n, %ntid.x;
    mov.u32 %t, %tid.x;
    mad.lo.u32 %i, %c, %n, %t;
    mul.wide.u32 %o, %i, 4;
"""

SAXPY = entry(
    "saxpy",
    ".param .u32 n, .param .f32 a, .param .u64 x, .param .u64 y",
    INDEX
    + """
    .reg .b32 %count;
    .reg .f32 %a, %x, %y;
    .reg .b64 %px, %py;
    .reg .pred %out;
    ld.param.u32 %count, [n];
    setp.ge.u32 %out, %i, %count;
    @%out ret;
    ld.param.f32 %a, [a];
    ld.param.u64 %px, [x];
    ld.param.u64 %py, [y];
    add.u64 %px, %px, %o;
    add.u64 %py, %py, %o;
    ld.global.f32 %x, [%px];
    ld.global.f32 %y, [%py];
    mul.rn.f32 %x, %x, %a;
    add.rn.f32 %y, %x, %y;
    st.global.f32 [%py], %y;
    ret;
""",
)

#: Stores its parameter at an address.
def store(type_):
    register = {"f16": "b16", "u8": "b16", "s8": "b16", "b8": "b16"}.get(type_, type_)
    moved = {"f16": "b16"}.get(type_, type_)
    return entry(
        "store",
        f".param .{type_} value, .param .u64 at",
        f"""
    .reg .{register} %v;
    .reg .b64 %at;
    ld.param.{moved} %v, [value];
    ld.param.u64 %at, [at];
    st.global.{moved} [%at], %v;
    ret;
""",
    )


#: Adds 1 to each 32-bit integer.
INCREMENT = entry(
    "increment",
    ".param .u64 data",
    INDEX
    + """
    .reg .b32 %v;
    .reg .b64 %p;
    ld.param.u64 %p, [data];
    add.u64 %p, %p, %o;
    ld.global.u32 %v, [%p];
    add.u32 %v, %v, 1;
    st.global.u32 [%p], %v;
    ret;
""",
)

#: Runs until it is stopped.
ENDLESS = entry("endless", "", "again: bra again;")
#: Executes `trap`.
TRAPS = entry("traps", "", "    trap;")
#: Two threads that wait for each other at different barriers.
DEADLOCK = entry(
    "deadlock",
    "",
    """
    .reg .b32 %t;
    .reg .pred %p;
    mov.u32 %t, %tid.x;
    setp.lt.u32 %p, %t, 32;
    @%p bar.sync 0, 64;
    @!%p bar.sync 1, 64;
    ret;
""",
)
#: Copies a structure of 24 bytes, given by value, to an address.
STRUCTURE = entry(
    "structure",
    ".param .align 8 .b8 s[24], .param .u64 at",
    """
    .reg .b64 %at, %a, %b, %c;
    ld.param.u64 %a, [s];
    ld.param.u64 %b, [s+8];
    ld.param.u64 %c, [s+16];
    ld.param.u64 %at, [at];
    st.global.u64 [%at], %a;
    st.global.u64 [%at+8], %b;
    st.global.u64 [%at+16], %c;
    ret;
""",
)
#: Sums the squares of 256 singles of each CTA in shared memory.
SQUARES = entry(
    "squares",
    ".param .u64 x, .param .u64 out",
    INDEX
    + """
    .shared .align 4 .f32 part[256];
    .reg .b64 %px, %po, %ps, %s;
    .reg .f32 %v, %w;
    .reg .b32 %half;
    .reg .pred %p;
    ld.param.u64 %px, [x];
    add.u64 %px, %px, %o;
    ld.global.f32 %v, [%px];
    mul.rn.f32 %v, %v, %v;
    mul.wide.u32 %s, %t, 4;
    mov.u64 %ps, part;
    add.u64 %ps, %ps, %s;
    st.shared.f32 [%ps], %v;
    mov.u32 %half, 128;
turn:
    bar.sync 0;
    setp.lt.u32 %p, %t, %half;
    @!%p bra skip;
    mul.wide.u32 %s, %half, 4;
    add.u64 %s, %s, %ps;
    ld.shared.f32 %w, [%s];
    ld.shared.f32 %v, [%ps];
    add.rn.f32 %v, %v, %w;
    st.shared.f32 [%ps], %v;
skip:
    shr.u32 %half, %half, 1;
    setp.ne.u32 %p, %half, 0;
    @%p bra turn;
    setp.ne.u32 %p, %t, 0;
    @%p ret;
    ld.param.u64 %po, [out];
    mul.wide.u32 %s, %c, 4;
    add.u64 %po, %po, %s;
    st.global.f32 [%po], %v;
    ret;
""",
)
#: Fills dynamic shared memory and sums it up.
DYNAMIC = entry(
    "dynamic",
    ".param .u64 out",
    """
    .reg .b32 %t, %v, %w;
    .reg .b64 %out, %s;
    .reg .pred %p;
    mov.u32 %t, %tid.x;
    mul.wide.u32 %s, %t, 4;
    .reg .b64 %base;
    mov.u64 %base, room;
    add.u64 %s, %s, %base;
    st.shared.u32 [%s], %t;
    bar.sync 0;
    setp.ne.u32 %p, %t, 0;
    @%p ret;
    ld.shared.u32 %v, [%base+124];
    ld.param.u64 %out, [out];
    st.global.u32 [%out], %v;
    ret;
""",
    head=HEAD + ".extern .shared .align 4 .b8 room[];\n",
)
#: Reads a texture of one axis at each thread's place, or writes a surface there.
SAMPLE = entry(
    "sample",
    ".param .u64 image, .param .u64 out",
    INDEX
    + """
    .reg .b64 %image, %out;
    .reg .f32 %x, %r, %g, %b, %a;
    ld.param.u64 %image, [image];
    ld.param.u64 %out, [out];
    cvt.rn.f32.u32 %x, %i;
    add.f32 %x, %x, 0f3F000000;
    tex.1d.v4.f32.f32 {%r, %g, %b, %a}, [%image, {%x}];
    add.u64 %out, %out, %o;
    st.global.f32 [%out], %r;
    ret;
""",
)
FILL_SURFACE = entry(
    "fill",
    ".param .u64 image",
    INDEX
    + """
    .reg .b64 %image;
    .reg .b32 %at;
    ld.param.u64 %image, [image];
    shl.b32 %at, %i, 2;
    sust.b.1d.b32.trap [%image, {%at}], {%i};
    ret;
""",
)
BOUND = entry(
    "sample",
    ".param .u64 out",
    INDEX
    + """
    .reg .b64 %out;
    .reg .f32 %x, %r, %g, %b, %a;
    ld.param.u64 %out, [out];
    cvt.rn.f32.u32 %x, %i;
    add.f32 %x, %x, 0f3F000000;
    tex.1d.v4.f32.f32 {%r, %g, %b, %a}, [image, {%x}];
    add.u64 %out, %out, %o;
    st.global.f32 [%out], %r;
    ret;
""",
    head=HEAD + ".global .texref image;\n",
)

//! Textures, samplers and surfaces from the command line and from launch files, with arrays in and out.

use std::path::PathBuf;
use std::process::{Command, Output};

fn ptxvm(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ptxvm"))
        .env("PTXVM_CACHE_DIR", "")
        .args(args)
        .output()
        .expect("the program starts")
}

#[track_caller]
fn expect(output: &Output, status: i32) -> String {
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(status), "{err}");
    err
}

/// A folder of its own for a test, removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("ptxvm-texture-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).to_string_lossy().into_owned()
    }

    fn write(&self, name: &str, text: &str) -> String {
        std::fs::write(self.0.join(name), text).expect("written");
        self.path(name)
    }

    /// A .npy file, as the format's description says: magic, version, length, header, data.
    fn array(&self, name: &str, dtype: &str, shape: &str, data: &[u8]) -> String {
        let mut header = format!("{{'descr': '{dtype}', 'fortran_order': False, 'shape': ({shape}), }}");
        while (header.len() + 11) % 64 != 0 {
            header.push(' ');
        }
        header.push('\n');
        let mut file = b"\x93NUMPY\x01\x00".to_vec();
        file.extend((header.len() as u16).to_le_bytes());
        file.extend(header.as_bytes());
        file.extend(data);
        std::fs::write(self.0.join(name), file).expect("written");
        self.path(name)
    }

    /// The data of a .npy file.
    fn data(&self, name: &str) -> Vec<u8> {
        let file = std::fs::read(self.0.join(name)).expect("written by the program");
        let header = usize::from(u16::from_le_bytes([file[8], file[9]]));
        file[10 + header..].to_vec()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _leftovers_are_harmless = std::fs::remove_dir_all(&self.0);
    }
}

fn floats(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

const SAMPLE: &str = "
.version 6.4
.target sm_70
.address_size 64
.global .texref t;
.visible .entry k(.param .u64 out)
{
    .reg .b32 %r<3>;
    .reg .f32 %f<7>;
    .reg .b64 %o;
    mov.u32 %r0, %tid.x;
    cvt.rn.f32.u32 %f0, %r0;
    mul.f32 %f0, %f0, 0f3F000000;
    tex.1d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [t, {%f0}];
    ld.param.u64 %o, [out];
    mad.wide.u32 %o, %r0, 16, %o;
    st.global.v4.f32 [%o], {%f1, %f2, %f3, %f4};
    ret;
}";

#[test]
// covers: opq.addr_wrap opq.addr_clamp_border opq.filter_linear opq.filter_nearest opq.normalized_coords opq.channel_data_type opq.channel_order
fn a_texture_with_every_field_of_its_sampler() {
    let scratch = Scratch::new("sampler");
    let ptx = scratch.write("k.ptx", SAMPLE);
    // Four texels rg: 0/255 and 255/255 in red, and in green 51, 102, 153, 204 of 255.
    let texels = scratch.array("t.npy", "|u1", "4, 2", &[0, 51, 255, 102, 0, 153, 255, 204]);
    let run = |fields: &str, name: &str| {
        let (bind, out) = (format!("t=tex:{texels},{fields}"), format!("out:f4[6,4]={}", scratch.path(name)));
        expect(&ptxvm(&["run", &ptx, "--block", "6", "--bind", &bind, "--arg", &out]), 0);
        scratch.data(name)
    };
    // Thread i looks at i/2. Unnormalised and nearest: texels 0, 0, 1, 1, 2, 2; alpha is 1, blue 0.
    let [a, b, c] =
        [[0.0, 51.0 / 255.0, 0.0, 1.0], [1.0, 102.0 / 255.0, 0.0, 1.0], [0.0, 153.0 / 255.0, 0.0, 1.0]];
    let want = [a, a, b, b, c, c].concat();
    assert_eq!(run("geom=1d,channel_data_type=unorm_int8", "nearest.npy"), floats(&want));
    // Normalised, wrapping: x = 4·i/2 = 2i: texels 0, 2, 0, 2, 0, 2.
    let want = [a, c, a, c, a, c].concat();
    let fields = "geom=1d,channel_data_type=unorm_int8,normalized_coords=1,addr_mode=wrap";
    assert_eq!(run(fields, "wrap.npy"), floats(&want));
    // Linear, border: at 0 half the border (rg 0 0, no alpha channel: 1) and half of texel 0; at 1/2 texel 0
    // itself; at 1 half of each.
    let fields = "geom=1d,channel_data_type=unorm_int8,channel_order=rg,filter_mode=linear,addr_mode_0=clamp_to_border";
    let got = run(fields, "linear.npy");
    let half = |x: [f32; 4], y: [f32; 4]| [0, 1, 2, 3].map(|i| (x[i] + y[i]) / 2.0);
    let want = [half([0.0, 0.0, 0.0, 1.0], a), a, half(a, b), b, half(b, c), c].concat();
    for (got, want) in got.chunks(4).zip(want) {
        let got = f32::from_le_bytes(got.try_into().expect("four bytes"));
        // One rounding of a sum of two products.
        assert!((got - want).abs() <= f32::EPSILON, "{got} {want}");
    }
}

const COPY: &str = "
.version 6.4
.target sm_70, texmode_independent
.address_size 64
.visible .entry k(.param .texref t, .param .samplerref s, .param .surfref d)
{
    .reg .b32 %r<4>, %v<4>;
    .reg .b64 %a, %o;
    mov.u32 %r0, %tid.x;
    mov.u32 %r1, %tid.y;
    add.u32 %r2, %r0, 1;
    tex.2d.v4.u32.s32 {%v0, %v1, %v2, %v3}, [t, s, {%r2, %r1}];
    add.u32 %v0, %v0, 100;
    shl.b32 %r3, %r0, 2;
    sust.b.2d.b32.trap [d, {%r3, %r1}], %v0;
    ret;
}";

#[test]
// covers: opq.mode_independent tex.sampler sust.b.2d opq.texref opq.samplerref opq.surfref
fn objects_as_parameters_in_independent_mode() {
    let scratch = Scratch::new("objects");
    let ptx = scratch.write("k.ptx", COPY);
    let words = |words: &[u32]| words.iter().flat_map(|w| w.to_le_bytes()).collect::<Vec<u8>>();
    let texels = scratch.array("t.npy", "<u4", "2, 3", &words(&[1, 2, 3, 4, 5, 6]));
    let (tex, out) = (format!("tex:{texels}"), format!("surf:out:u4[2,3]={}", scratch.path("d.npy")));
    // Each thread reads its right neighbour; what lies beyond is the edge, or the border: zero.
    for (mode, last) in [("clamp_to_edge", [3, 6]), ("clamp_to_border", [0, 0])] {
        let sampler = format!("sampler:addr_mode={mode}");
        expect(&ptxvm(&["run", &ptx, "--block", "3,2", "--arg", &tex, "--arg", &sampler, "--arg", &out]), 0);
        let [x, y] = last;
        assert_eq!(scratch.data("d.npy"), words(&[102, 103, 100 + x, 105, 106, 100 + y]), "{mode}");
    }
    // A surface that is too small: a trap.
    let small = format!("surf:out:u4[1,3]={}", scratch.path("e.npy"));
    let args = ["run", &ptx, "--block", "3,2", "--arg", &tex, "--arg", "sampler:", "--arg", &small];
    let why = expect(&ptxvm(&args), 3);
    assert!(why.contains("outside a surface of 3x1x1"), "{why}");
    assert!(!scratch.0.join("e.npy").exists(), "outputs are written only where nothing trapped");
}

const DOUBLE: &str = "
.version 6.4
.target sm_70
.address_size 64
.global .texref t;
.global .surfref s;
.visible .entry k(.param .u64 seen)
{
    .reg .b32 %r<3>, %v<4>;
    .reg .b64 %o;
    mov.u32 %r0, %tid.x;
    tex.level.1d.v4.u32.s32 {%v0, %v1, %v2, %v3}, [t, {%r0}], 1;
    add.u32 %v0, %v0, %v0;
    shl.b32 %r1, %r0, 2;
    sust.b.1d.b32.trap [s, {%r1}], %v0;
    ld.param.u64 %o, [seen];
    mad.wide.u32 %o, %r0, 4, %o;
    st.global.u32 [%o], %v0;
    ret;
}";

#[test]
// covers: mach.tex_coherence mach.persistence opq.num_mipmap_levels
fn later_launches_see_what_surfaces_were_given() {
    let scratch = Scratch::new("shared");
    let ptx = scratch.write("k.ptx", DOUBLE);
    let words = |words: &[u32]| words.iter().flat_map(|w| w.to_le_bytes()).collect::<Vec<u8>>();
    // Level 0 has four texels, level 1 two; the surface is level 1.
    let texels = scratch.array("x.npy", "<u4", "6,", &words(&[9, 8, 7, 6, 3, 5]));
    let launch = format!(
        r#"{{"block": 2, "texels": {{"x": {{"source": "inout:{texels}={}", "width": 4, "num_mipmap_levels": 2}}}},
            "bind": {{"t": {{"tex": "@x"}}, "s": {{"surf": "@x", "level": 1}}}}, "args": ["out:u4[2]={}"]}}"#,
        scratch.path("after.npy"),
        scratch.path("seen.npy")
    );
    let launch = scratch.write("launch.json", &launch);
    expect(&ptxvm(&["run", &ptx, "--launch", &launch, "--repeat", "3"]), 0);
    assert_eq!(scratch.data("seen.npy"), words(&[24, 40]));
    assert_eq!(scratch.data("after.npy"), words(&[9, 8, 7, 6, 24, 40]));
    // The command line goes before the file; one thread alone doubles.
    expect(&ptxvm(&["run", &ptx, "--launch", &launch, "--block", "1"]), 0);
    assert_eq!(scratch.data("after.npy"), words(&[9, 8, 7, 6, 6, 5]));
}

const LAYOUT: &str = "
.version 6.4
.target sm_70
.address_size 64
.global .surfref s;
.visible .entry k(.param .u64 out)
{
    .reg .b32 %v;
    .reg .b16 %h;
    .reg .b64 %o;
    ld.param.u64 %o, [out];
    suq.memory_layout.b32 %v, [s];
    st.global.u32 [%o], %v;
    suld.b.2d.b16.trap %h, [s, {2, 1}];
    cvt.u32.u16 %v, %h;
    st.global.u32 [%o+4], %v;
    ret;
}";

#[test]
// covers: opq.memory_layout suq.memory_layout
fn linear_memory_with_a_pitch() {
    let scratch = Scratch::new("linear");
    let ptx = scratch.write("k.ptx", LAYOUT);
    // Rows of three 16-bit texels: byte 2 of row 1 is its second texel.
    let words: Vec<u8> = [1u16, 2, 3, 40, 50, 60].iter().flat_map(|w| w.to_le_bytes()).collect();
    let texels = scratch.array("t.npy", "<u2", "2, 3", &words);
    for (fields, layout) in
        [("", 0u32), (",memory_layout=1", 1), (",memory_layout=1,pitch=64", 1), (",memory_layout=0", 0)]
    {
        let (bind, out) =
            (format!("s=surf:{texels}{fields}"), format!("out:u4[2]={}", scratch.path("out.npy")));
        expect(&ptxvm(&["run", &ptx, "--bind", &bind, "--arg", &out]), 0);
        assert_eq!(scratch.data("out.npy"), [layout.to_le_bytes(), 50u32.to_le_bytes()].concat(), "{fields}");
    }
}

#[test]
fn mistakes_are_named() {
    let scratch = Scratch::new("mistakes");
    let ptx = scratch.write("k.ptx", SAMPLE);
    let texels = scratch.array("t.npy", "<f4", "4,", &floats(&[0.0; 4]));
    let tex = format!("t=tex:{texels}");
    for (args, message) in [
        (vec!["--bind", "t=tex:/no/such/file.npy"], "cannot read"),
        (vec!["--bind", "t"], "expected `NAME=OBJECT`"),
        (vec!["--bind", "t=s32:1"], "expected `tex:`"),
        (vec!["--bind", "t=tex:@x"], "no `--texels x="),
        (vec!["--bind", "t=sampler:"], "`t`"),
        (vec!["--bind", "u=sampler:"], "`u`"),
        (vec!["--bind", &tex, "--bind", &tex], "bound twice"),
        (
            vec!["--bind", "t=tex:zeros:8,width=3,channel_data_type=float"],
            "8 bytes of `|u1` do not fit the texture's 12",
        ),
        (vec!["--bind", "t=tex:zeros:8,width=4000000000"], "texels"),
        (vec!["--bind", "t=tex:zeros:8,width=2,pitch=64,channel_data_type=float"], "memory_layout"),
        (vec!["--texels", "x"], "expected `NAME=SOURCE"),
        (vec!["--launch", "/no/such/file.json"], "/no/such/file.json"),
    ] {
        let mut all = vec!["run", &ptx, "--arg", "zeros:64"];
        all.extend(args.iter());
        let why = expect(&ptxvm(&all), 2);
        assert!(why.contains(message), "{args:?}: {why}");
    }
    // Nothing bound is the running program's fault.
    let why = expect(&ptxvm(&["run", &ptx, "--arg", "zeros:64"]), 3);
    assert!(why.contains("texture `t` is not bound"), "{why}");
}

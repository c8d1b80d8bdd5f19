# What `cargo xtask dist --prove` does on a machine without Rust and without LLVM. Fails with the first step that fails.
set -euo pipefail

step() {
    echo "── $*" >&2
    SECONDS=0
}
# Times count where the machine does nothing else.
took() {
    echo "   $SECONDS s" >&2
    if [ "$SECONDS" -gt "$1" ]; then
        load=$(cut -d. -f1 /proc/loadavg)
        echo "   more than $1 s, at a load of $load" >&2
        if [ "$load" -le "$(nproc)" ]; then exit 1; fi
    fi
}

step "there is no Rust and no LLVM"
for program in rustc cargo rustup clang llc; do
    if command -v "$program" && [ -s "$(command -v "$program")" ]; then exit 1; fi
done
found=$(find / -xdev -name 'libLLVM*' -size +1k 2>/dev/null | grep -v '^/packages' || true)
if [ -n "$found" ]; then echo "$found"; exit 1; fi
took 60

cd /tmp
cat > double.ptx <<'PTX'
.version 6.4
.target sm_70
.address_size 64
.visible .entry double_all(.param .u64 data)
{
    .reg .b32 %r<6>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [data];
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %ntid.x;
    mov.u32 %r3, %tid.x;
    mad.lo.s32 %r4, %r1, %r2, %r3;
    mul.wide.u32 %rd2, %r4, 4;
    add.s64 %rd3, %rd1, %rd2;
    ld.global.u32 %r5, [%rd3];
    add.s32 %r5, %r5, %r5;
    st.global.u32 [%rd3], %r5;
    ret;
}
PTX

use_it() {
    "$1" demo --picture /tmp/mandelbrot.png
    "$1" run double.ptx --grid 64 --block 256 --arg zeros:65536 --engine jit --no-cache --stats 2> stats > /dev/null
    grep 'engine jit' stats || { cat stats; exit 1; }
    PTXVM_ENGINE=jit "$1" exec -- python3 /packages/tests/driver.py
}

step "the tarball"
mkdir -p /opt && tar -C /opt -xzf /packages/ptxvm-*-linux.tar.gz
use_it /opt/ptxvm-*-linux/bin/ptxvm
took 120

step "the same from another folder, by a link on PATH"
mv /opt/ptxvm-*-linux "/opt/other place"
mkdir -p /tmp/bin && ln -s "/opt/other place/bin/ptxvm" /tmp/bin/ptxvm
PATH=/tmp/bin:$PATH use_it ptxvm
took 120

step "the Debian package"
dpkg-deb --info /packages/ptxvm_*.deb > /dev/null
dpkg-deb -x /packages/ptxvm_*.deb /tmp/deb
use_it /tmp/deb/usr/bin/ptxvm
took 120

step "the wheel, with numba and pytest"
python3 -m venv /tmp/venv
# numpy 2.5, which needs Python 3.12, cannot be used by numba-cuda 0.30.
numpy=$(python3 -c 'import sys; print("numpy<2.5" if sys.version_info >= (3, 12) else "")')
/tmp/venv/bin/pip install --quiet /packages/ptxvm-*.whl 'numba-cuda[cu12]' pytest ${numpy:+"$numpy"}
cp -r /packages/tests /tmp/tests && cd /tmp/tests
PTXVM_ENGINE=jit /tmp/venv/bin/pytest --ptxvm -p no:cacheprovider -q test_numba.py
took 120

step "the wheel: the command line, the extension, several processes of tests"
/tmp/venv/bin/python -m ptxvm demo --picture /tmp/mandelbrot.png > /dev/null
/tmp/venv/bin/ptxvm --version
/tmp/venv/bin/python extension.py
/tmp/venv/bin/pip install --quiet pytest-xdist
PTXVM_ENGINE=jit /tmp/venv/bin/pytest --ptxvm -p no:cacheprovider -q -n 2 test_numba.py
took 120

echo "proved" >&2

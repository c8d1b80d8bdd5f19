//! y = a * x + y from a Rust program: load a module, copy arrays to the device, launch, and read the result.

use ptxvm::{Arg, Error, Launch, Vm};

const PTX: &str = "
.version 6.4
.target sm_70
.address_size 64
.visible .entry saxpy(.param .u32 n, .param .f32 a, .param .u64 x, .param .u64 y)
{
    .reg .pred %p;
    .reg .b32 %r<5>;
    .reg .f32 %f<4>;
    .reg .b64 %rd<4>;
    ld.param.u32 %r1, [n];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.u32 %r2, %r2, %r3, %r4;
    setp.ge.u32 %p, %r2, %r1;
    @%p bra done;
    ld.param.f32 %f1, [a];
    ld.param.u64 %rd1, [x];
    ld.param.u64 %rd2, [y];
    mul.wide.u32 %rd3, %r2, 4;
    add.u64 %rd1, %rd1, %rd3;
    add.u64 %rd2, %rd2, %rd3;
    ld.global.f32 %f2, [%rd1];
    ld.global.f32 %f3, [%rd2];
    fma.rn.f32 %f3, %f1, %f2, %f3;
    st.global.f32 [%rd2], %f3;
done:
    ret;
}";

fn main() -> Result<(), Error> {
    let vm = Vm::new()?;
    let kernel = vm.load("saxpy.ptx", PTX)?.kernel("saxpy")?;
    let host: Vec<f32> = (0..1000u16).map(f32::from).collect();
    let (x, y) = (vm.buffer(&host)?, vm.buffer(&vec![1f32; 1000])?);

    let arguments = [1000u32.into(), 2.5f32.into(), Arg::buffer(&x), Arg::buffer(&y)];
    let launch = Launch::new([4, 1, 1], [256, 1, 1]).args(&kernel, &arguments)?;
    let report = vm.launch(&kernel, &launch)?;

    let wanted: Vec<f32> = host.iter().map(|x| 2.5 * x + 1.0).collect();
    assert_eq!(y.read()?, wanted);
    println!("1000 elements are right, after {} warp instructions", report.warp_instructions);
    Ok(())
}

#[test]
fn it_runs() -> Result<(), Error> {
    main()
}

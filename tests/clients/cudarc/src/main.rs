//! cudarc: contexts, streams, events, copies, launches, graphs of dependencies between streams, errors.

use cudarc::driver::{CudaContext, DriverError, LaunchConfig, PushKernelArg};
use cudarc::nvrtc::Ptx;

const TEXT: &str = include_str!("../../kernels.ptx");

fn main() -> Result<(), DriverError> {
    let context = CudaContext::new(0)?;
    println!("{} {:?}", context.name()?, context.compute_capability()?);
    let stream = context.default_stream();
    let module = context.load_module(Ptx::from_src(TEXT))?;
    let scale = module.load_function("scale")?;
    let n = 5000u32;
    let x: Vec<f32> = (0..n).map(|i| i as f32 / 7.0).collect();
    let from = stream.clone_htod(&x)?;
    let mut to = stream.alloc_zeros::<f32>(n as usize)?;
    let factor = 2.5f32;
    // SAFETY: the kernel takes these parameters and stays inside both arrays.
    unsafe {
        stream
            .launch_builder(&scale)
            .arg(&mut to)
            .arg(&from)
            .arg(&factor)
            .arg(&n)
            .launch(LaunchConfig::for_num_elems(n))?;
    }
    let got = stream.clone_dtoh(&to)?;
    assert!(got.iter().zip(&x).all(|(got, x)| *got == x.mul_add(2.5, 1.0)));

    // Two streams that wait for each other.
    let other = stream.fork()?;
    let reverse = module.load_function("reverse")?;
    let mut data = other.clone_htod(&(0..1024u32).collect::<Vec<_>>())?;
    let config = LaunchConfig { grid_dim: (1, 1, 1), block_dim: (1024, 1, 1), shared_mem_bytes: 4096 };
    for _ in 0..5 {
        // SAFETY: one block of as many threads as the array has elements.
        unsafe { other.launch_builder(&reverse).arg(&mut data).launch(config)? };
    }
    stream.join(&other)?;
    let got = stream.clone_dtoh(&data)?;
    assert!(got.iter().rev().copied().eq(0..1024));
    let copy = stream.clone_dtod(&data)?;
    assert_eq!(stream.clone_dtoh(&copy)?, got);

    let start = context.new_event(None)?;
    start.record(&stream)?;
    stream.synchronize()?;
    assert!(start.is_complete());
    assert!(module.load_function("nothing").is_err());
    assert!(context.load_module(Ptx::from_src("not ptx")).is_err());
    println!("cudarc works");
    Ok(())
}

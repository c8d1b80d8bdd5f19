//! cust: a context, a module from PTX, buffers, streams, launches.

use cust::prelude::*;
use std::error::Error;

const TEXT: &str = include_str!("../../kernels.ptx");

fn main() -> Result<(), Box<dyn Error>> {
    let _context = cust::quick_init()?;
    println!("{}", Device::get_device(0)?.name()?);
    let module = Module::from_ptx(TEXT, &[])?;
    let stream = Stream::new(StreamFlags::NON_BLOCKING, None)?;
    let n = 3000u32;
    let x: Vec<f32> = (0..n).map(|i| i as f32).collect();
    let from = x.as_slice().as_dbuf()?;
    let to = DeviceBuffer::from_slice(&vec![0f32; n as usize])?;
    let scale = module.get_function("scale")?;
    let (_, block) = scale.suggested_launch_configuration(0, 0.into())?;
    let grid = n.div_ceil(block);
    // SAFETY: the kernel takes these parameters and stays inside both buffers.
    unsafe {
        launch!(scale<<<grid, block, 0, stream>>>(to.as_device_ptr(), from.as_device_ptr(), 3f32, n))?;
    }
    stream.synchronize()?;
    assert!(to.as_host_vec()?.iter().zip(&x).all(|(got, x)| *got == x * 3.0 + 1.0));
    assert!(Module::from_ptx("not ptx", &[]).is_err());
    println!("cust works");
    Ok(())
}

//! Testing kernels in Rust without a GPU: the examples of `docs/rust.md`, as a file to copy from.

use ptxvm::{Arg, Error, ErrorKind, FaultKind, Kernel, Launch, Vm};
use std::time::Duration;

/// `y = a*x + y`, guarded by `n`.
const SAXPY: &str = include_str!("../../../../tests/fixtures/ptx/saxpy.ptx");
/// A loop without an end.
const FOREVER: &str = include_str!("../../../../tests/fixtures/ptx/infinite_loop.ptx");

/// A device of its own for each test: they run at once and share nothing.
fn saxpy() -> Result<(Vm, Kernel), Error> {
    let vm = Vm::new()?;
    let kernel = vm.load("saxpy.ptx", SAXPY)?.kernel("saxpy")?;
    Ok((vm, kernel))
}

#[test]
fn sums_are_right_beyond_the_last_whole_cta() -> Result<(), Error> {
    let (vm, kernel) = saxpy()?;
    let x: Vec<f32> = (0..1000u16).map(f32::from).collect();
    let (from, to) = (vm.buffer(&x)?, vm.buffer(&[1f32; 1000])?);
    let args = [1000u32.into(), 2.5f32.into(), Arg::buffer(&from), Arg::buffer(&to)];
    let report = vm.launch(&kernel, &Launch::new([4, 1, 1], [256, 1, 1]).args(&kernel, &args)?)?;
    assert!(to.read()?.iter().zip(&x).all(|(y, x)| *y == 2.5 * x + 1.0));
    // 1024 threads, 18 instructions each, of which 4 have a guard that 24 threads fail; they are executed all
    // the same.
    assert!(report.thread_instructions >= 1000 * 18);
    Ok(())
}

#[test]
fn an_access_beyond_the_array_is_a_value_with_its_place() -> Result<(), Error> {
    let (vm, kernel) = saxpy()?;
    let (from, to) = (vm.buffer(&[0f32; 10])?, vm.named_buffer("y", &[0f32; 10])?);
    // The kernel is told of eleven elements.
    let args = [11u32.into(), 1f32.into(), Arg::buffer(&from), Arg::buffer(&to)];
    let launch = Launch::new([1, 1, 1], [32, 1, 1]).args(&kernel, &args)?;
    let error = vm.launch(&kernel, &launch).expect_err("it reads beyond");
    let trap = error.trap().expect("the running program is at fault");
    assert!(matches!(trap.kind, FaultKind::IllegalAddress));
    assert_eq!((trap.tid, trap.kernel.as_str()), ([10, 0, 0], "saxpy"));
    assert!(trap.instruction.contains("ld.global.f32"), "{trap}");
    Ok(())
}

#[test]
fn arguments_that_do_not_fit_are_the_callers_mistake() -> Result<(), Error> {
    let (_vm, kernel) = saxpy()?;
    let wrong = [1000u32.into(), 2.5f64.into(), Arg::address(0), Arg::address(0)];
    let error = Launch::new([1, 1, 1], [32, 1, 1]).args(&kernel, &wrong).expect_err("8 bytes for 4");
    assert!(matches!(error.kind(), ErrorKind::Caller(_)), "{error}");
    Ok(())
}

#[test]
fn a_kernel_that_hangs_is_stopped_by_a_deadline_or_by_its_caller() -> Result<(), Error> {
    let vm = Vm::new()?;
    let module = vm.load("infinite_loop.ptx", FOREVER)?;
    let name = module.kernels().next().expect("it has one").to_owned();
    let kernel = module.kernel(&name)?;
    let mut launch = Launch::new([1, 1, 1], [32, 1, 1]);
    launch.params = vec![0; kernel.param_bytes()];
    let error = vm.launch(&kernel, &launch.clone().timeout(Duration::from_millis(50))).expect_err("it hangs");
    assert!(matches!(error.trap().map(|trap| &trap.kind), Some(FaultKind::TimeLimit)), "{error}");
    let pending = vm.stream().launch(&kernel, launch);
    pending.cancel();
    assert!(pending.wait().expect_err("it was stopped").trap().is_some());
    Ok(())
}

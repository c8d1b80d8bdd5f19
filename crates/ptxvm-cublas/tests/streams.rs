//! Work in streams: order, captures into graphs, results in device memory; and copies of vectors and
//! matrices.

mod support;

use support::{Device, EXECUTION_FAILED, Handle, SUCCESS};

fn stream() -> usize {
    let mut stream = 0usize;
    assert_eq!(call!("cuStreamCreate", &mut stream, 1), SUCCESS);
    stream
}

/// Blocks a stream until its number is 1.
fn gate(stream: usize) -> Device<u32> {
    let gate = Device::new(&[0u32]);
    assert_eq!(call!("cuStreamWaitValue32_v2", stream, gate.at, 1, 1), SUCCESS);
    gate
}

fn open(gate: &Device<u32>) {
    assert_eq!(call!("cuStreamWriteValue32_v2", 2usize, gate.at, 1, 0), SUCCESS);
}

#[test]
fn work_is_done_in_its_turn() {
    let handle = Handle::new();
    let stream = stream();
    assert_eq!(call!("cublasSetStream_v2", handle.0, stream), SUCCESS);
    let x = Device::new(&[1f32, 2.0, 3.0]);
    let gate = gate(stream);
    // The factor is read at the call, so the program may change it afterwards.
    let mut two = 2f32;
    assert_eq!(call!("cublasSscal_v2", handle.0, 3, &two, x.at, 1), SUCCESS);
    two = 9.0;
    assert_eq!(call!("cuMemsetD32Async", x.at, 0x4000_0000, 1, stream), SUCCESS);
    assert_eq!(call!("cublasSscal_v2", handle.0, 3, &10f32, x.at, 1), SUCCESS);
    assert_eq!(call!("cuStreamQuery", stream), 600, "it waits");
    open(&gate);
    assert_eq!(call!("cuStreamSynchronize", stream), SUCCESS);
    assert_eq!((x.get(), two), (vec![20.0, 40.0, 60.0], 9.0));
    // A result in host memory is complete when the call returns.
    let mut sum = 0f32;
    assert_eq!(call!("cublasSasum_v2", handle.0, 3, x.at, 1, &mut sum), SUCCESS);
    assert_eq!(sum, 120.0);
}

#[test]
fn captured_work_runs_with_its_graph() {
    let handle = Handle::new();
    let stream = stream();
    assert_eq!(call!("cublasSetStream_v2", handle.0, stream), SUCCESS);
    let (x, c) = (Device::new(&[1f32, 2.0, 3.0, 4.0]), Device::new(&[0f32; 4]));
    let (factor, sum) = (Device::new(&[3f32]), Device::new(&[0f32]));
    assert_eq!(call!("cuStreamBeginCapture_v2", stream, 0), SUCCESS);
    handle.device_mode(true);
    assert_eq!(call!("cublasSscal_v2", handle.0, 4, factor.at, x.at, 1), SUCCESS);
    assert_eq!(call!("cublasSasum_v2", handle.0, 4, x.at, 1, sum.at), SUCCESS);
    handle.device_mode(false);
    let (one, zero) = (1f32, 0f32);
    let status = call!("cublasSgemm_v2", handle.0, 0, 0, 2, 2, 2, &one, x.at, 2, x.at, 2, &zero, c.at, 2);
    assert_eq!(status, SUCCESS);
    // The host cannot wait for work that is only captured.
    let mut host = 5f32;
    assert_eq!(call!("cublasSasum_v2", handle.0, 4, x.at, 1, &mut host), EXECUTION_FAILED);
    let (mut graph, mut executable) = (0usize, 0usize);
    assert_eq!(call!("cuStreamEndCapture", stream, &mut graph), 901, "waiting has ended the capture");
    assert_eq!(call!("cuStreamBeginCapture_v2", stream, 0), SUCCESS);
    handle.device_mode(true);
    assert_eq!(call!("cublasSscal_v2", handle.0, 4, factor.at, x.at, 1), SUCCESS);
    assert_eq!(call!("cublasSasum_v2", handle.0, 4, x.at, 1, sum.at), SUCCESS);
    handle.device_mode(false);
    let status = call!("cublasSgemm_v2", handle.0, 0, 0, 2, 2, 2, &one, x.at, 2, x.at, 2, &zero, c.at, 2);
    assert_eq!(status, SUCCESS);
    assert_eq!(call!("cuStreamEndCapture", stream, &mut graph), SUCCESS);
    assert_eq!(x.get(), [1.0, 2.0, 3.0, 4.0], "nothing has run");
    assert_eq!(call!("cuGraphInstantiateWithFlags", &mut executable, graph, 0usize), SUCCESS);
    for _ in 0..2 {
        assert_eq!(call!("cuGraphLaunch", executable, stream), SUCCESS);
    }
    assert_eq!(call!("cuStreamSynchronize", stream), SUCCESS);
    assert_eq!(x.get(), [9.0, 18.0, 27.0, 36.0]);
    assert_eq!(sum.get(), [90.0]);
    assert_eq!(c.get(), [567.0, 810.0, 1215.0, 1782.0]);
    assert_eq!(call!("cuGraphExecDestroy", executable), SUCCESS);
    assert_eq!(call!("cuGraphDestroy", graph), SUCCESS);
}

#[test]
fn vectors_and_matrices_are_copied() {
    let handle = Handle::new();
    let host: Vec<f64> = (0..24).map(f64::from).collect();
    let device = Device::new(&[-1f64; 24]);
    let from = host.as_ptr().expose_provenance();
    assert_eq!(call!("cublasSetVector", 5, 8, from, 2, device.at, 3), SUCCESS);
    let expected = |i: usize| if i.is_multiple_of(3) && i < 15 { (i / 3 * 2) as f64 } else { -1.0 };
    assert_eq!(device.get(), (0..24).map(expected).collect::<Vec<_>>());
    let mut back = [0f64; 10];
    assert_eq!(call!("cublasGetVector", 5, 8, device.at, 3, back.as_mut_ptr().addr(), 2), SUCCESS);
    assert_eq!(back, [0.0, 0.0, 2.0, 0.0, 4.0, 0.0, 6.0, 0.0, 8.0, 0.0]);
    let device = Device::new(&[-1f64; 24]);
    let stream = stream();
    assert_eq!(call!("cublasSetMatrixAsync", 2, 3, 8, from, 4, device.at, 3, stream), SUCCESS);
    assert_eq!(device.get()[..9], [0.0, 1.0, -1.0, 4.0, 5.0, -1.0, 8.0, 9.0, -1.0]);
    let mut back = [7f64; 12];
    let to = back.as_mut_ptr().addr();
    assert_eq!(call!("cublasGetMatrixAsync_64", 2, 3, 8, device.at, 3, to, 4, stream), SUCCESS);
    assert_eq!(back, [0.0, 1.0, 7.0, 7.0, 4.0, 5.0, 7.0, 7.0, 8.0, 9.0, 7.0, 7.0]);
    assert_eq!(call!("cublasSetVector", 25, 8, from, 1, device.at, 1), EXECUTION_FAILED);
    drop(handle);
}

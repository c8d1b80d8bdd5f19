//! Order and concurrency of streams.

use crate::{FaultKind, Kernel, Launch, StreamKind, Vm};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

fn noting(list: &Arc<Mutex<Vec<u32>>>, value: u32) -> impl FnOnce() + Send + 'static {
    let list = Arc::clone(list);
    move || list.lock().expect("no panic holds it").push(value)
}

#[test]
fn a_stream_keeps_its_order() {
    let vm = Vm::new().expect("a device");
    let stream = vm.stream();
    let list = Arc::default();
    for value in 0..1000 {
        stream.submit(noting(&list, value));
    }
    stream.synchronize();
    assert_eq!(*list.lock().expect("done"), (0..1000).collect::<Vec<_>>());
    assert!(stream.is_idle());
}

#[test]
fn streams_run_beside_each_other() {
    let vm = Vm::new().expect("a device");
    let (one, two) = (vm.stream(), vm.stream());
    let (send, receive) = channel();
    // The first task ends only after the second has run.
    one.submit(move || receive.recv().expect("the other stream sends"));
    two.submit(move || send.send(()).expect("the first stream receives"));
    one.synchronize();
    two.synchronize();
}

#[test]
fn a_mark_orders_two_streams() {
    let vm = Vm::new().expect("a device");
    let (one, two) = (vm.stream(), vm.stream());
    let list = Arc::default();
    let (send, receive) = channel();
    one.submit(move || receive.recv().expect("the host sends"));
    one.submit(noting(&list, 1));
    let mark = one.record();
    two.wait(&mark);
    two.submit(noting(&list, 2));
    assert!(!mark.is_done() && mark.reached().is_none() && !two.is_idle());
    send.send(()).expect("the task waits");
    two.synchronize();
    assert!(mark.is_done() && mark.reached().is_some());
    assert_eq!(*list.lock().expect("done"), [1, 2]);
}

#[test]
fn the_legacy_stream_waits_and_is_waited_for() {
    let vm = Vm::new().expect("a device");
    let group = vm.streams();
    let legacy = group.stream(StreamKind::Legacy);
    let blocking = group.stream(StreamKind::Blocking);
    let independent = group.stream(StreamKind::Independent);
    let list = Arc::default();
    let (send, receive) = channel();
    blocking.submit(move || receive.recv().expect("the host sends"));
    blocking.submit(noting(&list, 1));
    legacy.submit(noting(&list, 2));
    blocking.submit(noting(&list, 3));
    independent.submit(noting(&list, 0));
    independent.synchronize();
    assert_eq!(*list.lock().expect("no panic"), [0]);
    send.send(()).expect("the task waits");
    group.synchronize();
    assert_eq!(*list.lock().expect("done"), [0, 1, 2, 3]);
}

#[test]
fn a_task_may_run_on_the_callers_thread() {
    let vm = Vm::new().expect("a device");
    let stream = vm.stream();
    let count = Arc::new(AtomicU32::new(0));
    for _ in 0..100 {
        let count = Arc::clone(&count);
        stream.submit(move || {
            count.fetch_add(1, Ordering::Relaxed);
        });
    }
    let here = std::thread::current().id();
    let seen = stream.run(|| (count.load(Ordering::Relaxed), std::thread::current().id()));
    assert_eq!(seen, (100, here));
}

#[test]
fn many_threads_submit_to_many_streams() {
    let vm = Vm::new().expect("a device");
    let group = vm.streams();
    let legacy = group.stream(StreamKind::Legacy);
    let count = Arc::new(AtomicU32::new(0));
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let stream = group.stream(StreamKind::Blocking);
                for turn in 0..200 {
                    let add = || {
                        let count = Arc::clone(&count);
                        move || {
                            count.fetch_add(1, Ordering::Relaxed);
                        }
                    };
                    stream.submit(add());
                    if turn % 7 == 0 {
                        legacy.submit(add());
                    }
                    if turn % 11 == 0 {
                        stream.run(add());
                    }
                }
            });
        }
    });
    group.synchronize();
    assert_eq!(count.load(Ordering::Relaxed), 8 * (200 + 29 + 19));
}

/// A kernel that runs until it is stopped.
fn endless(vm: &Vm) -> Kernel {
    let text = ".version 6.4\n.target sm_70\n.address_size 64\n.visible .entry k() { again: bra again; }";
    vm.load("endless.ptx", text).and_then(|module| module.kernel("k")).expect("a kernel")
}

#[test]
fn a_launch_is_cancelled_while_it_runs() {
    let vm = Vm::new().expect("a device");
    let (stream, kernel) = (vm.stream(), endless(&vm));
    let pending = stream.launch(&kernel, Launch::new([1; 3], [32, 1, 1]));
    std::thread::sleep(Duration::from_millis(20));
    assert!(!pending.mark().is_done());
    pending.cancel();
    let error = pending.wait().expect_err("it was stopped");
    assert_eq!(error.trap().map(|trap| &trap.kind), Some(&FaultKind::Cancelled));
    // The stream continues.
    assert_eq!(stream.run(|| 1), 1);
}

#[test]
fn a_launch_has_a_deadline() {
    let vm = Vm::new().expect("a device");
    let (stream, kernel) = (vm.stream(), endless(&vm));
    let late = stream.launch(&kernel, Launch::new([1; 3], [32, 1, 1]).timeout(Duration::from_millis(20)));
    let long = stream.launch(&kernel, Launch::new([1; 3], [32, 1, 1]).max_steps(1000));
    let kind = |error: crate::Error| error.trap().map(|trap| trap.kind.clone());
    assert_eq!(late.wait().err().and_then(kind), Some(FaultKind::TimeLimit));
    assert_eq!(long.wait().err().and_then(kind), Some(FaultKind::StepLimit));
}

//! Tests the layer end to end: modules are built, compiled, placed and run.

use crate::target::{Level, Target};
use std::time::Instant;

use super::{Builder, Code, Flush, IntPred, Likely, Module, Session};

fn available() -> impl Iterator<Item = Target> {
    Level::ALL.into_iter().filter(|level| *level <= Target::host().level()).map(Target::host_at)
}

/// `extern "C" fn(*const u32, *mut u32, n)`: adds 1 to elements whose value is even, chunk by chunk.
fn bump(session: &Session) -> Module {
    let module = session.module("bump");
    let b = Builder::new(&module);
    let (int, ptr) = (b.int(32), b.ptr());
    let function = module.function("bump", b.fn_type(None, &[ptr, ptr, int]), Flush::Never);
    let lanes = session.target().level().lanes();
    let vector = b.vec(int, lanes);
    let entry = b.append_block(function, "entry");
    let body = b.append_block(function, "body");
    let end = b.append_block(function, "end");
    b.position_at_end(entry);
    b.br(body);
    b.position_at_end(body);
    let i = b.phi(int);
    b.add_incoming(i, b.zero(int), entry);
    let offset = b.mul(i, b.const_int(int, 4));
    let x = b.load(vector, b.gep(b.param(function, 0), offset), 4);
    let odd = b.and(x, b.const_int(vector, 1));
    let even = b.icmp(IntPred::Eq, odd, b.zero(vector));
    let y = b.add(x, b.const_int(vector, 1));
    let to = b.gep(b.param(function, 1), offset);
    b.masked_store(y, to, 4, even);
    let next = b.add(i, b.const_int(int, u64::from(lanes)));
    b.add_incoming(i, next, body);
    let more = b.icmp(IntPred::Ult, next, b.param(function, 2));
    b.cond_br(more, body, end, Likely::Yes);
    b.position_at_end(end);
    b.ret(None);
    drop(b);
    module
}

fn run(session: &Session, module: &Module) -> Vec<u32> {
    let code = Code::place(&session.object(module).unwrap().bytes, &[]).unwrap();
    let address = code.lookup("bump").unwrap();
    // SAFETY: the module's function has this signature; `code` outlives the call.
    let bump: extern "C" fn(*const u32, *mut u32, u32) = unsafe { std::mem::transmute(address) };
    let (from, mut to) = ((0..64).collect::<Vec<u32>>(), vec![9; 64]);
    bump(from.as_ptr(), to.as_mut_ptr(), 64);
    to
}

#[test]
fn code_of_every_level_runs() {
    for target in available() {
        let session = Session::new(target).unwrap();
        let module = bump(&session);
        assert_eq!(module.verify(), Ok(()));
        let expected: Vec<u32> = (0..64).map(|x| if x % 2 == 0 { x + 1 } else { 9 }).collect();
        assert_eq!(run(&session, &module), expected, "{}", target);
    }
}

#[test]
fn lines_are_asked_for_beside_vectors() {
    if !Builder::ASKS_BESIDE {
        return;
    }
    for target in available() {
        let session = Session::new(target).unwrap();
        let module = session.module("beside");
        let b = Builder::new(&module);
        let (ptr, lanes) = (b.ptr(), session.target().level().lanes());
        let function = module.function("beside", b.fn_type(None, &[ptr, ptr]), Flush::Never);
        b.position_at_end(b.append_block(function, "entry"));
        let vector = b.vec(b.int(32), lanes);
        let mut x = b.load(vector, b.param(function, 0), 4);
        for cache in 0..4 {
            x = b.add(x, b.const_int(vector, 1));
            // A prefetch accepts every address.
            x = b.ask_beside(x, b.const_int(b.int(64), u64::MAX << cache), cache);
        }
        b.store(x, b.param(function, 1), 4);
        b.ret(None);
        drop(b);
        assert_eq!(module.verify(), Ok(()));
        let text = session.emit_asm(&module).unwrap();
        for hint in ["prefetchnta", "prefetcht2", "prefetcht1", "prefetcht0"] {
            assert_eq!(text.matches(hint).count(), 1, "{} {hint}", target);
        }
        let code = Code::place(&session.object(&module).unwrap().bytes, &[]).unwrap();
        let address = code.lookup("beside").unwrap();
        // SAFETY: the module's function has this signature; `code` outlives the call.
        let beside: extern "C" fn(*const u32, *mut u32) = unsafe { std::mem::transmute(address) };
        let (from, mut to) = ((0..16).collect::<Vec<u32>>(), vec![0; 16]);
        beside(from.as_ptr(), to.as_mut_ptr());
        let expected: Vec<u32> = (0..16).map(|x| if x < lanes { x + 4 } else { 0 }).collect();
        assert_eq!(to, expected, "{}", target);
    }
}

#[test]
fn broken_code_is_found() {
    let session = Session::new(Target::generic(Level::Baseline)).unwrap();
    let module = session.module("broken");
    let b = Builder::new(&module);
    let function = module.function("f", b.fn_type(None, &[]), Flush::Never);
    let entry = b.append_block(function, "entry");
    b.position_at_end(entry);
    assert!(module.verify().is_err());
    assert!(!b.is_terminated());
    b.ret(None);
    assert!(b.is_terminated());
    assert_eq!(module.verify(), Ok(()));
}

#[test]
fn names_of_two_objects_do_not_meet_and_code_is_freed() {
    let session = Session::new(Target::host()).unwrap();
    let object = session.object(&bump(&session)).unwrap().bytes;
    let first = Code::orc(&object, &[]).unwrap();
    let second = Code::orc(&object, &[]).unwrap();
    let addresses = (first.lookup("bump").unwrap(), second.lookup("bump").unwrap());
    assert_ne!(addresses.0, addresses.1);
    assert_eq!((addresses.0 % 64, addresses.1 % 64), (0, 0));
    assert!(first.lookup("other").is_err());
    drop(first);
    drop(second);
    for _ in 0..100 {
        let code = Code::orc(&object, &[]).unwrap();
        code.lookup("bump").unwrap();
    }
}

#[test]
fn several_threads_compile_at_once() {
    let session = Session::new(Target::host()).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..5 {
                    assert_eq!(run(&session, &bump(&session))[2], 3);
                }
            });
        }
    });
}

#[test]
fn texts_of_code() {
    let session = Session::new(Target::host()).unwrap();
    let module = bump(&session);
    assert!(module.emit_ir().contains("define void @bump"));
    assert!(session.emit_asm(&module).unwrap().contains("bump:"));
}

/// Prints timings (`--nocapture`) and asserts no bound.
#[test]
fn what_a_compilation_takes() {
    let start = Instant::now();
    let session = Session::new(Target::host()).unwrap();
    println!("session   {:?}", start.elapsed());
    for turn in 0..5 {
        let start = Instant::now();
        let module = bump(&session);
        let built = start.elapsed();
        let object = session.object(&module).unwrap().bytes;
        let compiled = start.elapsed() - built;
        let code = Code::place(&object, &[]).unwrap();
        code.lookup("bump").unwrap();
        let placed = start.elapsed() - built - compiled;
        println!("{turn}: build {built:?}, compile {compiled:?} ({} bytes), place {placed:?}", object.len());
    }
}

/// `extern "C" fn(u64) -> u64`: the host's `twice` of the argument, plus the address of `there`, plus a
/// constant from a table in the code.
fn stranger(session: &Session) -> Module {
    let module = session.module("stranger");
    let b = Builder::new(&module);
    let long = b.int(64);
    let function = module.function("stranger", b.fn_type(Some(long), &[long]), Flush::Never);
    let entry = b.append_block(function, "entry");
    b.position_at_end(entry);
    let number = b.param(function, 0);
    let twice = b.call_host(b.fn_type(Some(long), &[long]), "twice", &[number]);
    let lanes = session.target().level().lanes();
    let table: Vec<u64> = (0..u64::from(lanes)).map(|n| n * n * 1_000_003 + 7).collect();
    let table = b.const_ints(long, &table);
    let spread = b.mul(b.splat(number, lanes), table);
    let sum = b.add(twice, b.extract(spread, 3));
    b.ret(Some(b.add(sum, b.address("there"))));
    assert_eq!(b.externals(), ["there", "twice"]);
    drop(b);
    module
}

extern "C" fn twice(number: u64) -> u64 {
    2 * number
}

fn call_stranger(code: &Code) -> u64 {
    let address = code.lookup("stranger").unwrap();
    // SAFETY: the module's function has this signature; `code` outlives the call.
    let stranger: extern "C" fn(u64) -> u64 = unsafe { std::mem::transmute(address) };
    stranger(5)
}

#[test]
fn both_ways_of_placing_give_the_same() {
    let expected = 10 + 5 * (9 * 1_000_003 + 7) + 0x1234_5678_9abc;
    let symbols = [("twice".to_owned(), twice as *const () as usize), ("there".to_owned(), 0x1234_5678_9abc)];
    for target in available() {
        let session = Session::new(target).unwrap();
        let object = session.object(&stranger(&session)).unwrap().bytes;
        assert_eq!(call_stranger(&Code::orc(&object, &symbols).unwrap()), expected, "{}", target);
        assert_eq!(call_stranger(&Code::place(&object, &symbols).unwrap()), expected, "{}", target);
        if cfg!(target_arch = "x86_64") {
            let own = super::place::place(&object, &|name| {
                symbols.iter().find(|(have, _)| have == name).map(|(_, address)| *address)
            });
            assert_eq!(own.map(|placed| placed.lookup("stranger").is_some()), Ok(true), "{}", target);
        }
        assert!(Code::orc(&object, &[]).and_then(|code| code.lookup("stranger")).is_err());
    }
}

/// Placing terminates for any bytes; only code that was generated here is executed.
#[test]
fn damaged_objects_are_refused_or_placed_but_never_break_anything() {
    let session = Session::new(Target::host()).unwrap();
    let object = session.object(&stranger(&session)).unwrap().bytes;
    let resolve = |_: &str| Some(0x1000);
    for len in 0..object.len() {
        let _ = super::place::place(&object[..len], &resolve);
    }
    let mut damaged = object.clone();
    for at in 0..object.len() {
        for byte in [0, 1, 0x7f, 0x80, 0xff] {
            damaged[at] = byte;
            let _ = super::place::place(&damaged, &resolve);
        }
        damaged[at] = object[at];
    }
    assert!(super::place::place(b"rubbish", &resolve).is_err());
    assert!(super::place::place(&object, &|_| None).is_err(), "a symbol that nothing defines");
}

/// A module whose compilation takes minutes: instruction selection of one block takes more than linear time.
fn long_work(session: &Session) -> Module {
    let module = session.module("long");
    let b = Builder::new(&module);
    let ptr = b.ptr();
    // Below the size from which on LLVM uses less effort.
    for name in ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"] {
        let function = module.function(name, b.fn_type(None, &[ptr, ptr]), Flush::Never);
        b.position_at_end(b.append_block(function, "entry"));
        let vector = b.vec(b.int(32), session.target().level().lanes());
        let mut values: Vec<_> =
            (0..8).map(|at| b.load(vector, b.offset(b.param(function, 0), at * 64), 4)).collect();
        for at in 0..40_000 {
            let (one, other) = (values[at % 8], values[(at * 5 + 3) % 8]);
            values[at % 8] = if at % 3 == 0 { b.mul(one, other) } else { b.add(one, other) };
        }
        for (at, value) in (0..).zip(&values) {
            b.store(*value, b.offset(b.param(function, 1), at * 64), 4);
        }
        b.ret(None);
    }
    drop(b);
    module
}

/// The process ends at once while a thread executes LLVM, with its own status: also if another thread than
/// the first ends it, and if the compiling thread has blocked all signals. Functions that were registered
/// with `atexit` still run. One that was registered when the compilation began runs after the destructors of
/// the tables that LLVM has allocated since: if the compiling thread were not stopped by then, it would crash
/// while that function sleeps.
#[test]
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
fn the_process_ends_while_llvm_works() {
    const CHILD: &str = "PTXVM_TEST_END_WHILE_LLVM_WORKS";
    extern "C" fn at_the_end() {
        std::thread::sleep(std::time::Duration::from_millis(500));
        eprintln!("handlers ran");
    }
    if std::env::var_os(CHILD).is_some() {
        let mut all = std::mem::MaybeUninit::zeroed();
        // SAFETY: the place is one for a set of signals.
        let _always = unsafe { libc::sigfillset(all.as_mut_ptr()) };
        // SAFETY: the set has been filled; threads that start from here on block all signals.
        let _always = unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, all.as_ptr(), std::ptr::null_mut()) };
        let (tell, told) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let session = Session::new(Target::host()).unwrap();
            let module = long_work(&session);
            tell.send(()).unwrap();
            session.object(&module)
        });
        told.recv().unwrap();
        // SAFETY: the function lives as long as the process.
        let _registered = unsafe { libc::atexit(at_the_end) };
        std::thread::sleep(std::time::Duration::from_millis(500));
        // SAFETY: any thread may end the process.
        unsafe { libc::exit(7) };
    }
    let name = "llvm::tests::the_process_ends_while_llvm_works";
    let start = std::time::Instant::now();
    let child = std::process::Command::new(std::env::current_exe().unwrap())
        .args([name, "--exact", "--nocapture"])
        .env(CHILD, "1")
        .output()
        .unwrap();
    assert_eq!(child.status.code(), Some(7), "{child:?}");
    assert!(String::from_utf8_lossy(&child.stderr).contains("handlers ran"), "{child:?}");
    // It waits neither for LLVM nor for the time limit.
    assert!(start.elapsed().as_secs() < 15, "took {:?}", start.elapsed());
}

/// The first thread returns from `main` while another thread executes LLVM for the first time, and no
/// function of this library was ever called by the first thread. Tables that LLVM allocates during that
/// compilation have destructors that run before all functions that were registered earlier.
#[test]
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
fn main_returns_while_llvm_works_for_the_first_time() {
    const CHILD: &str = "PTXVM_TEST_RETURN_WHILE_LLVM_WORKS";
    if std::env::var_os(CHILD).is_some() {
        let (tell, told) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let session = Session::new(Target::host()).unwrap();
            let module = session.module("many");
            let b = Builder::new(&module);
            // Below the size from which on LLVM uses less effort.
            for at in 0..6_000 {
                let function = module.function(&format!("f{at}"), b.fn_type(None, &[b.ptr()]), Flush::Never);
                b.position_at_end(b.append_block(function, "entry"));
                let pointer = b.param(function, 0);
                let value = b.load(b.int(32), pointer, 4);
                b.store(b.add(b.mul(value, value), value), pointer, 4);
                b.ret(None);
            }
            drop(b);
            tell.send(()).unwrap();
            session.object(&module)
        });
        told.recv().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(300));
        return;
    }
    let name = "llvm::tests::main_returns_while_llvm_works_for_the_first_time";
    // The test runs on a thread of its own in the child, too, unless there is one thread for all tests.
    let child = std::process::Command::new(std::env::current_exe().unwrap())
        .args([name, "--exact", "--test-threads", "2"])
        .env(CHILD, "1")
        .output()
        .unwrap();
    assert_eq!(child.status.code(), Some(0), "{child:?}");
}

//! The layer end to end: modules are built, compiled, placed and run.

use std::time::Instant;

use super::{Builder, Cpu, Flush, IntPred, Likely, Module, Session};

fn available() -> impl Iterator<Item = Cpu> {
    Cpu::ALL.into_iter().filter(|cpu| cpu.is_available())
}

/// `extern "C" fn(*const u32, *mut u32, n)`: adds 1 to elements whose value is even, chunk by chunk.
fn bump(session: &Session) -> Module {
    let module = session.module("bump");
    let b = Builder::new(&module);
    let (int, ptr) = (b.int(32), b.ptr());
    let function = module.function("bump", b.fn_type(None, &[ptr, ptr, int]), Flush::Never);
    let lanes = session.cpu().lanes();
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
    let code = session.add(module).unwrap();
    let address = code.lookup("bump").unwrap();
    // SAFETY: the module's function has this signature; `code` outlives the call.
    let bump: extern "C" fn(*const u32, *mut u32, u32) = unsafe { std::mem::transmute(address) };
    let (from, mut to) = ((0..64).collect::<Vec<u32>>(), vec![9; 64]);
    bump(from.as_ptr(), to.as_mut_ptr(), 64);
    to
}

#[test]
fn code_of_every_level_runs() {
    for cpu in available() {
        let session = Session::new(cpu).unwrap();
        let module = bump(&session);
        assert_eq!(module.verify(), Ok(()));
        let expected: Vec<u32> = (0..64).map(|x| if x % 2 == 0 { x + 1 } else { 9 }).collect();
        assert_eq!(run(&session, &module), expected, "{}", cpu.name());
    }
}

#[test]
fn broken_code_is_found() {
    let session = Session::new(Cpu::Baseline).unwrap();
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
    let session = Session::new(Cpu::detect()).unwrap();
    let object = session.object(&bump(&session)).unwrap();
    let first = session.add_object(&object).unwrap();
    let second = session.add_object(&object).unwrap();
    let addresses = (first.lookup("bump").unwrap(), second.lookup("bump").unwrap());
    assert_ne!(addresses.0, addresses.1);
    assert_eq!((addresses.0 % 64, addresses.1 % 64), (0, 0));
    assert!(first.lookup("other").is_err());
    drop(first);
    drop(second);
    for _ in 0..100 {
        let code = session.add_object(&object).unwrap();
        code.lookup("bump").unwrap();
    }
}

#[test]
fn several_threads_compile_at_once() {
    let session = Session::new(Cpu::detect()).unwrap();
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
fn rubbish_is_no_object() {
    let session = Session::new(Cpu::detect()).unwrap();
    let code = session.add_object(b"rubbish");
    assert!(code.and_then(|code| code.lookup("f")).is_err());
}

#[test]
fn texts_of_code() {
    let session = Session::new(Cpu::detect()).unwrap();
    let module = bump(&session);
    assert!(module.emit_ir().contains("define void @bump"));
    assert!(session.emit_asm(&module).unwrap().contains("bump:"));
}

/// Not a bound, but figures to read with `--nocapture`.
#[test]
fn what_a_compilation_takes() {
    let start = Instant::now();
    let session = Session::new(Cpu::detect()).unwrap();
    println!("session   {:?}", start.elapsed());
    for turn in 0..5 {
        let start = Instant::now();
        let module = bump(&session);
        let built = start.elapsed();
        let object = session.object(&module).unwrap();
        let compiled = start.elapsed() - built;
        let code = session.add_object(&object).unwrap();
        code.lookup("bump").unwrap();
        let placed = start.elapsed() - built - compiled;
        println!("{turn}: build {built:?}, compile {compiled:?} ({} bytes), place {placed:?}", object.len());
    }
}

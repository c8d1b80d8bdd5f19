//! Divergence, calls and warp-synchronous instructions, with bound code made by hand.

use crate::bound::{Call, Term, Value32};
use crate::frame::DEPTH_LIMIT;
use crate::mem::Memory;
use crate::testkit::*;
use crate::trap::FaultKind;
use ptx::check::module::FuncId;
use ptx::ir::{ArgPlace, BlockId, Callee, ParamPlace, ParamSlot};
use ptx::isa::{Sem, Space};

const GLOBAL: Space = Space::Global;

/// The seeds with which each test of divergence runs.
fn each_seed(mut test: impl FnMut(&mut Machine)) {
    for seed in 0..12 {
        let mut machine = Machine::new();
        machine.seed = seed;
        test(&mut machine);
    }
}

/// Stores the number of active lanes, from `activemask`.
fn store_company(out: u64) -> Vec<crate::bound::Step> {
    vec![
        step(|exec| {
            let company = exec.mask.count_ones();
            for lane in crate::lanes::lanes_of(exec.mask) {
                exec.regs.r32[15].0[lane] = company;
            }
            Ok(())
        }),
        store(GLOBAL, Sem::Weak, out, 15, |_, l| l as u32),
    ]
}

fn kind_of(machine: &Machine, code: &std::sync::Arc<crate::bound::Code>) -> FaultKind {
    machine.run(code, 1, 32).trap.expect("a trap").stopped.fault.kind
}

#[test]
fn both_sides_run_and_lanes_meet_again() {
    let machine = Machine::new();
    let (out, company) = (machine.array(32), machine.array(32));
    let mut last = store_company(company);
    last.push(store(GLOBAL, Sem::Weak, out, 0, tid));
    let kernel = function(
        "k",
        vec![
            block(vec![setp(0, |e, l| tid(e, l) % 2 == 1)], branch(yes(0), 1, 2)),
            block(vec![set(0, |e, l| 100 + tid(e, l))], goto(3)),
            block(vec![set(0, |e, l| 200 + tid(e, l))], goto(3)),
            block(last, Term::Exit),
        ],
    );
    machine.finish(&code(vec![kernel]), 1, 32);
    let expected: Vec<u32> = (0..32).map(|t| if t % 2 == 1 { 100 + t } else { 200 + t }).collect();
    assert_eq!(machine.read(out, 32), expected);
    assert_eq!(machine.read(company, 32), [32; 32]);
}

#[test]
fn guards_hold_back_lanes() {
    let machine = Machine::new();
    let out = machine.array(32);
    let kernel = function(
        "k",
        vec![block(
            vec![
                setp(0, |e, l| tid(e, l) < 5),
                guarded(yes(0), set(0, |_, _| 1)),
                guarded(no(0), set(0, |_, _| 2)),
                setp(1, |_, _| false),
                // Out of bounds, but its guard is true in no lane.
                guarded(yes(1), store(GLOBAL, Sem::Weak, 8, 0, tid)),
                store(GLOBAL, Sem::Weak, out, 0, tid),
            ],
            Term::Exit,
        )],
    );
    machine.finish(&code(vec![kernel]), 1, 32);
    let expected: Vec<u32> = (0..32).map(|t| if t < 5 { 1 } else { 2 }).collect();
    assert_eq!(machine.read(out, 32), expected);
}

#[test]
fn lanes_leave_a_loop_one_by_one_and_meet_behind_it() {
    each_seed(|machine| {
        let (out, company) = (machine.array(32), machine.array(32));
        let mut last = store_company(company);
        last.push(store(GLOBAL, Sem::Weak, out, 1, tid));
        let kernel = function(
            "k",
            vec![
                block(vec![set(0, |_, _| 0), set(1, |_, _| 0)], goto(1)),
                // do { i += 1; sum += i } while (i < tid)
                block(
                    vec![
                        set(0, |e, l| r(e, 0, l) + 1),
                        set(1, |e, l| r(e, 1, l) + r(e, 0, l)),
                        setp(0, |e, l| r(e, 0, l) < tid(e, l)),
                    ],
                    branch(yes(0), 1, 2),
                ),
                block(last, Term::Exit),
            ],
        );
        machine.finish(&code(vec![kernel]), 1, 32);
        let expected: Vec<u32> = (0..32u32).map(|t| (1..=t.max(1)).sum()).collect();
        assert_eq!(machine.read(out, 32), expected);
        if machine.seed == 0 {
            assert_eq!(machine.read(company, 32), [32; 32]);
        }
    });
}

/// Collatz lengths: an inner branch in a loop with divergent trip counts, in a loop over two starts.
#[test]
fn nested_divergence_in_nested_loops() {
    each_seed(|machine| {
        let (out, company) = (machine.array(32), machine.array(32));
        let mut last = store_company(company);
        last.push(store(GLOBAL, Sem::Weak, out, 2, tid));
        let kernel = function(
            "k",
            vec![
                block(vec![set(2, |_, _| 0), set(3, |_, _| 0)], goto(1)),
                block(vec![set(0, |e, l| 1 + tid(e, l) + 50 * r(e, 3, l))], goto(2)),
                block(vec![setp(0, |e, l| r(e, 0, l) == 1)], branch(yes(0), 6, 3)),
                block(
                    vec![set(2, |e, l| r(e, 2, l) + 1), setp(1, |e, l| r(e, 0, l).is_multiple_of(2))],
                    branch(yes(1), 4, 5),
                ),
                block(vec![set(0, |e, l| r(e, 0, l) / 2)], goto(2)),
                block(vec![set(0, |e, l| 3 * r(e, 0, l) + 1)], goto(2)),
                block(
                    vec![set(3, |e, l| r(e, 3, l) + 1), setp(2, |e, l| r(e, 3, l) < 2)],
                    branch(yes(2), 1, 7),
                ),
                block(last, Term::Exit),
            ],
        );
        machine.finish(&code(vec![kernel]), 1, 32);
        let length = |mut n: u32| {
            let mut steps = 0;
            while n != 1 {
                n = if n.is_multiple_of(2) { n / 2 } else { 3 * n + 1 };
                steps += 1;
            }
            steps
        };
        let expected: Vec<u32> = (0..32).map(|t| length(1 + t) + length(51 + t)).collect();
        assert_eq!(machine.read(out, 32), expected);
        if machine.seed == 0 {
            assert_eq!(machine.read(company, 32), [32; 32]);
        }
    });
}

#[test]
fn a_switch_sends_lanes_to_their_targets_and_refuses_what_is_past_the_end() {
    let machine = Machine::new();
    let out = machine.array(32);
    let kernel = |limit: u32| {
        let case = |n: u32| block(vec![set(1, move |e, l| 10 * n + tid(e, l))], goto(4));
        function(
            "k",
            vec![
                block(
                    vec![set(0, move |e, l| tid(e, l) % limit)],
                    Term::Switch {
                        index: Value32::Reg(r32(0)),
                        targets: vec![BlockId(3), BlockId(1), BlockId(3), BlockId(2)],
                    },
                ),
                case(1),
                case(2),
                case(3),
                block(vec![store(GLOBAL, Sem::Weak, out, 1, tid)], Term::Exit),
            ],
        )
    };
    machine.finish(&code(vec![kernel(4)]), 1, 32);
    let expected: Vec<u32> = (0..32).map(|t| 10 * [3, 1, 3, 2][t as usize % 4] + t).collect();
    assert_eq!(machine.read(out, 32), expected);
    let outcome = machine.run(&code(vec![kernel(5)]), 1, 32);
    let fault = outcome.trap.expect("a trap").stopped.fault;
    assert_eq!((fault.kind, fault.lane), (FaultKind::BadBranchIndex, 4));
}

/// Both sides of a branch call one function; the lanes of each side are together in it, and all reconverge
/// afterwards.
#[test]
fn divergent_calls_return_to_their_callers() {
    each_seed(|machine| {
        let (out, company) = (machine.array(32), machine.array(32));
        let mut last = store_company(company);
        last.push(store(GLOBAL, Sem::Weak, out, 1, tid));
        let kernel = function(
            "k",
            vec![
                block(vec![set(0, tid), setp(0, |e, l| tid(e, l) < 12)], branch(yes(0), 1, 2)),
                block(vec![], call(1, r32(0), r32(1), 3)),
                block(vec![set(0, |e, l| 1000 + r(e, 0, l))], call(1, r32(0), r32(1), 3)),
                block(last, Term::Ret),
            ],
        );
        // Caller and callee have separate registers: the callee overwrites all of its own.
        let square = device(
            "square",
            vec![
                block(vec![setp(0, |e, l| r(e, 0, l).is_multiple_of(2))], branch(yes(0), 1, 2)),
                block(vec![set(1, |e, l| r(e, 0, l) * r(e, 0, l))], Term::Ret),
                block(vec![set(1, |e, l| r(e, 0, l) * r(e, 0, l)), set(0, |_, _| 0)], Term::Ret),
            ],
        );
        machine.finish(&code(vec![kernel, square]), 1, 32);
        let expected: Vec<u32> =
            (0..32u32).map(|t| if t < 12 { t * t } else { (1000 + t) * (1000 + t) }).collect();
        assert_eq!(machine.read(out, 32), expected);
        if machine.seed == 0 {
            assert_eq!(machine.read(company, 32), [32; 32]);
        }
    });
}

/// `f(n) = n < 2 ? n : f(n - 1) + f(n - 2)`, with the intermediate result in the activation's frame.
fn fibonacci() -> crate::bound::Function {
    let mut f = device(
        "fib",
        vec![
            block(vec![setp(0, |e, l| r(e, 0, l) < 2)], branch(yes(0), 1, 2)),
            block(vec![set(1, |e, l| r(e, 0, l))], Term::Ret),
            block(vec![set(2, |e, l| r(e, 0, l) - 1)], call(1, r32(2), r32(3), 3)),
            block(
                vec![
                    step(|e| {
                        let at = u64::from(e.frame);
                        e.mem.store_at(Space::Local, at, e.mask, Sem::Weak, &e.regs.r32[3])
                    }),
                    set(2, |e, l| r(e, 0, l) - 2),
                ],
                call(1, r32(2), r32(4), 4),
            ),
            block(
                vec![
                    step(|e| {
                        let at = u64::from(e.frame);
                        e.mem.load_at(Space::Local, at, e.mask, Sem::Weak, &mut e.regs.r32[3])
                    }),
                    set(1, |e, l| r(e, 3, l) + r(e, 4, l)),
                ],
                Term::Ret,
            ),
        ],
    );
    (f.frame_bytes, f.frame_align) = (4, 4);
    f
}

#[test]
fn recursion_has_registers_and_a_frame_for_each_activation() {
    each_seed(|machine| {
        machine.stack = 256;
        let (out, company) = (machine.array(32), machine.array(32));
        let mut last = store_company(company);
        last.push(store(GLOBAL, Sem::Weak, out, 1, tid));
        let kernel = function(
            "k",
            vec![
                block(vec![set(0, |e, l| tid(e, l) % 11)], call(1, r32(0), r32(1), 1)),
                block(last, Term::Exit),
            ],
        );
        machine.finish(&code(vec![kernel, fibonacci()]), 1, 32);
        let table = [0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55];
        let expected: Vec<u32> = (0..32).map(|t| table[t % 11]).collect();
        assert_eq!(machine.read(out, 32), expected);
        if machine.seed == 0 {
            assert_eq!(machine.read(company, 32), [32; 32]);
        }
    });
}

#[test]
fn endless_recursion_is_a_stack_overflow() {
    let kernel = || function("k", vec![block(vec![], call(1, r32(0), r32(1), 1)), block(vec![], Term::Exit)]);
    let endless = |frame_bytes| {
        let mut f = device("f", vec![block(vec![], call(1, r32(0), r32(1), 1)), block(vec![], Term::Ret)]);
        f.frame_bytes = frame_bytes;
        f
    };
    let mut machine = Machine::new();
    machine.stack = 1000;
    assert_eq!(kind_of(&machine, &code(vec![kernel(), endless(24)])), FaultKind::StackOverflow);
    // Without frames, the limit is the number of nested calls.
    let outcome = machine.run(&code(vec![kernel(), endless(0)]), 1, 1);
    assert_eq!(outcome.trap.expect("a trap").stopped.fault.kind, FaultKind::StackOverflow);
    assert_eq!(outcome.steps, u64::from(DEPTH_LIMIT) + 1);
}

#[test]
fn recursion_with_many_registers_overflows_early() {
    let kernel = function("k", vec![block(vec![], call(1, r32(0), r32(1), 1)), block(vec![], Term::Exit)]);
    let mut large = device("f", vec![block(vec![], call(1, r32(0), r32(1), 1)), block(vec![], Term::Ret)]);
    // 16 MiB of registers for each call.
    large.regs.r32 = 1 << 17;
    let outcome = Machine::new().run(&code(vec![kernel, large]), 1, 1);
    assert_eq!(outcome.trap.expect("a trap").stopped.fault.kind, FaultKind::StackOverflow);
    assert!(outcome.steps < 20);
}

#[test]
fn frames_are_out_of_bounds_when_their_activation_is_over() {
    let mut machine = Machine::new();
    machine.stack = 64;
    let mut kernel = function(
        "k",
        vec![
            block(vec![], call(1, r32(0), r32(1), 1)),
            // The callee's frame was at 8.
            block(vec![load(Space::Local, Sem::Weak, 8, 0, |_, _| 0)], Term::Exit),
        ],
    );
    kernel.frame_bytes = 8;
    let mut f = device("f", vec![block(vec![store(Space::Local, Sem::Weak, 8, 0, |_, _| 0)], Term::Ret)]);
    (f.frame_bytes, f.frame_align) = (8, 8);
    let outcome = machine.run(&code(vec![kernel, f]), 1, 32);
    let trap = outcome.trap.expect("a trap");
    assert_eq!(trap.stopped.fault.kind, FaultKind::IllegalAddress);
    assert_eq!((trap.stopped.function, trap.stopped.span), (0, ptx::Span::new(8, 15)));
    assert_eq!(
        trap.nearest.expect("prose"),
        "local memory of the thread, 8 bytes; the address is 0 bytes past its end"
    );
}

/// Arguments and results in all kinds of places: register to frame, frame to frame, immediate, frame to
/// register.
#[test]
fn arguments_go_through_frames_and_registers() {
    let mut machine = Machine::new();
    machine.stack = 128;
    let out = machine.array(3 * 32);
    let slot = |place, bytes| ParamSlot { place, bytes, align: 4 };
    let local = |at: u64| {
        move |e: &mut crate::bound::Exec<'_>, reg: usize| {
            let at = u64::from(e.frame) + at;
            let mut value = e.regs.r32[reg];
            let done = e.mem.load_at(Space::Local, at, e.mask, Sem::Weak, &mut value);
            e.regs.r32[reg] = value;
            done
        }
    };
    let mut kernel = function(
        "k",
        vec![
            block(
                vec![
                    set(0, |e, l| 7 + tid(e, l)),
                    step(|e| {
                        for (at, add) in [(16, 1), (20, 2), (24, 3)] {
                            let value = crate::lanes::Lane(std::array::from_fn(|l| 10 * l as u32 + add));
                            e.mem.store_at(Space::Local, at, e.mask, Sem::Weak, &value)?;
                        }
                        Ok(())
                    }),
                ],
                Term::Call(Box::new(Call {
                    callee: Callee::Direct(FuncId(1)),
                    builtin: None,
                    args: vec![
                        ArgPlace::Reg(r32(0)),
                        ArgPlace::Frame { offset: 16, bytes: 12 },
                        ArgPlace::Imm(0x1_0000_0005),
                        ArgPlace::Frame { offset: 16, bytes: 4 },
                    ],
                    rets: vec![ArgPlace::Frame { offset: 4, bytes: 4 }, ArgPlace::Reg(r32(9))],
                    next: BlockId(1),
                })),
            ),
            block(
                vec![
                    step(move |e| local(4)(e, 8)),
                    store(GLOBAL, Sem::Weak, out, 8, |e, l| 2 * tid(e, l)),
                    store(GLOBAL, Sem::Weak, out, 9, |e, l| 2 * tid(e, l) + 1),
                ],
                Term::Exit,
            ),
        ],
    );
    (kernel.frame_bytes, kernel.frame_align) = (28, 4);
    let mut f = function(
        "f",
        vec![block(
            vec![
                step(move |e| local(0)(e, 1)),
                step(move |e| local(4)(e, 2)),
                step(move |e| local(12)(e, 3)),
                // r4 is the immediate, r5 the frame's first word.
                set(6, |e, l| r(e, 1, l) + r(e, 2, l) + r(e, 3, l)),
                set(7, |e, l| r(e, 4, l) * r(e, 5, l)),
                step(|e| {
                    let at = u64::from(e.frame) + 20;
                    e.mem.store_at(Space::Local, at, e.mask, Sem::Weak, &e.regs.r32[6])
                }),
            ],
            Term::Ret,
        )],
    );
    f.params = vec![
        slot(ParamPlace::Frame(0), 4),
        slot(ParamPlace::Frame(4), 12),
        slot(ParamPlace::Reg(r32(4)), 4),
        slot(ParamPlace::Reg(r32(5)), 4),
    ];
    f.returns = vec![slot(ParamPlace::Frame(20), 4), slot(ParamPlace::Reg(r32(7)), 4)];
    (f.frame_bytes, f.frame_align) = (24, 8);
    machine.finish(&code(vec![kernel, f]), 1, 32);
    let expected: Vec<u32> =
        (0..32).flat_map(|t| [7 + t + (10 * t + 1) + (10 * t + 3), 5 * (10 * t + 1)]).collect();
    assert_eq!(machine.read(out, 64), expected);
}

#[test]
fn calls_through_addresses_reach_each_lanes_function() {
    each_seed(|machine| {
        let (out, company) = (machine.array(32), machine.array(32));
        let mut last = store_company(company);
        last.push(store(GLOBAL, Sem::Weak, out, 1, tid));
        let indirect = |allowed: Option<Vec<FuncId>>| {
            Term::Call(Box::new(Call {
                callee: Callee::Indirect { address: r64(0), allowed },
                builtin: None,
                args: vec![ArgPlace::Reg(r32(0))],
                rets: vec![ArgPlace::Reg(r32(1))],
                next: BlockId(1),
            }))
        };
        let addresses = |wrong: u64| {
            step(move |e| {
                for lane in 0..32 {
                    let func = 1 + lane as u32 % 3;
                    e.regs.r64[0].0[lane] =
                        Memory::function_address(0x1000, func) + if lane == 31 { wrong } else { 0 };
                }
                Ok(())
            })
        };
        let f = |n: u32| device("f", vec![block(vec![set(1, move |e, l| r(e, 0, l) + 100 * n)], Term::Ret)]);
        let kernel = |wrong, allowed, last| {
            function(
                "k",
                vec![block(vec![set(0, tid), addresses(wrong)], indirect(allowed)), block(last, Term::Exit)],
            )
        };
        machine.finish(&code(vec![kernel(0, None, last), f(1), f(2), f(3)]), 1, 32);
        let expected: Vec<u32> = (0..32).map(|t| t + 100 * (1 + t % 3)).collect();
        assert_eq!(machine.read(out, 32), expected);
        if machine.seed == 0 {
            assert_eq!(machine.read(company, 32), [32; 32]);
        }
        let bad = |wrong, allowed| {
            let outcome = machine.run(&code(vec![kernel(wrong, allowed, vec![]), f(1), f(2), f(3)]), 1, 32);
            let fault = outcome.trap.expect("a trap").stopped.fault;
            (fault.kind, fault.lane)
        };
        // An address between functions, one past the last function, and a function that the target list does
        // not name.
        assert_eq!(bad(8, None), (FaultKind::BadCall, 31));
        assert_eq!(bad(32, None), (FaultKind::BadCall, 31));
        assert_eq!(bad(0, Some(vec![FuncId(1), FuncId(3)])), (FaultKind::BadCall, 1));
    });
}

#[test]
fn exit_inside_a_function_ends_the_thread() {
    each_seed(|machine| {
        let out = machine.array(32);
        let kernel = function(
            "k",
            vec![
                block(vec![set(0, tid)], call(1, r32(0), r32(1), 1)),
                block(vec![store(GLOBAL, Sem::Weak, out, 1, tid)], bar_sync(0, 2)),
                block(vec![], Term::Exit),
            ],
        );
        let f = device(
            "f",
            vec![
                block(vec![setp(0, |e, l| r(e, 0, l).is_multiple_of(4))], branch(yes(0), 1, 2)),
                block(vec![], Term::Exit),
                block(vec![set(1, |e, l| 5 + r(e, 0, l))], Term::Ret),
            ],
        );
        machine.finish(&code(vec![kernel, f]), 1, 32);
        let expected: Vec<u32> = (0..32).map(|t| if t % 4 == 0 { 0 } else { 5 + t }).collect();
        assert_eq!(machine.read(out, 32), expected);
    });
}

#[test]
fn members_meet_from_different_instructions() {
    each_seed(|machine| {
        let out = machine.array(32);
        let kernel = function(
            "k",
            vec![
                block(
                    vec![set(0, |e, l| 1 << (tid(e, l) % 8)), setp(0, |e, l| tid(e, l) < 20)],
                    branch(yes(0), 1, 2),
                ),
                block(vec![], sum_sync(Value32::Imm(u32::MAX), 0, 1, 3)),
                block(vec![], sum_sync(Value32::Imm(u32::MAX), 0, 1, 3)),
                block(vec![store(GLOBAL, Sem::Weak, out, 1, tid)], Term::Exit),
            ],
        );
        machine.finish(&code(vec![kernel]), 1, 32);
        assert_eq!(machine.read(out, 32), [4 * 255; 32]);
    });
}

#[test]
fn members_meet_from_different_activations_and_masks_stay_apart() {
    each_seed(|machine| {
        let out = machine.array(32);
        // The member masks are the even and the odd lanes; low lanes arrive in the kernel, high lanes in a
        // function.
        let members = |e: &crate::bound::Exec<'_>, l: usize| {
            if tid(e, l).is_multiple_of(2) { 0x5555_5555 } else { 0xaaaa_aaaa }
        };
        let kernel = function(
            "k",
            vec![
                block(
                    vec![set(0, |e, l| tid(e, l) + 1), set(2, members), setp(0, |e, l| tid(e, l) < 9)],
                    branch(yes(0), 1, 2),
                ),
                block(vec![], sum_sync(Value32::Reg(r32(2)), 0, 1, 3)),
                block(vec![], call(1, r32(0), r32(1), 3)),
                block(vec![store(GLOBAL, Sem::Weak, out, 1, tid)], Term::Exit),
            ],
        );
        let f = device(
            "f",
            vec![
                block(vec![set(2, members)], sum_sync(Value32::Reg(r32(2)), 0, 1, 1)),
                block(vec![], Term::Ret),
            ],
        );
        machine.finish(&code(vec![kernel, f]), 1, 32);
        let even: u32 = (0..32).filter(|t| t % 2 == 0).map(|t| t + 1).sum();
        let odd: u32 = (0..32).filter(|t| t % 2 == 1).map(|t| t + 1).sum();
        let expected: Vec<u32> = (0..32).map(|t| if t % 2 == 0 { even } else { odd }).collect();
        assert_eq!(machine.read(out, 32), expected);
    });
}

#[test]
fn exited_and_missing_lanes_are_not_waited_for() {
    each_seed(|machine| {
        // 20 threads; every third exits late, while the others already wait.
        let out = machine.array(20);
        let kernel = function(
            "k",
            vec![
                block(
                    vec![set(0, |_, _| 1), setp(0, |e, l| tid(e, l).is_multiple_of(3))],
                    branch(yes(0), 2, 1),
                ),
                block(vec![], sum_sync(Value32::Imm(u32::MAX), 0, 1, 3)),
                block(vec![], Term::Exit),
                block(vec![store(GLOBAL, Sem::Weak, out, 1, tid)], Term::Exit),
            ],
        );
        machine.finish(&code(vec![kernel]), 1, 20);
        let expected: Vec<u32> = (0..20).map(|t| if t % 3 == 0 { 0 } else { 13 }).collect();
        assert_eq!(machine.read(out, 20), expected);
    });
}

#[test]
fn a_lane_outside_its_member_mask_traps() {
    let kernel = function(
        "k",
        vec![block(vec![], sum_sync(Value32::Imm(0xffff_ff0f), 0, 1, 1)), block(vec![], Term::Exit)],
    );
    let outcome = Machine::new().run(&code(vec![kernel]), 1, 32);
    let fault = outcome.trap.expect("a trap").stopped.fault;
    assert_eq!((fault.kind, fault.lane), (FaultKind::BadMemberMask, 4));
}

#[test]
fn members_that_never_come_are_a_deadlock() {
    let kernel = function(
        "k",
        vec![
            block(vec![setp(0, |e, l| tid(e, l) < 4)], branch(yes(0), 1, 2)),
            block(vec![], sum_sync(Value32::Imm(0x1f), 0, 1, 3)),
            block(vec![], bar_sync(0, 3)),
            block(vec![], Term::Exit),
        ],
    );
    let FaultKind::Deadlock(who) = kind_of(&Machine::new(), &code(vec![kernel])) else {
        panic!("no deadlock")
    };
    assert!(who.contains("lanes 0x0000000f at `line 02` (line 2) (for the members 0x0000001f)"), "{who}");
    assert!(who.contains("lanes 0xfffffff0 at `line 03` (line 3)"), "{who}");
}

#[test]
fn aligned_instructions_run_once_for_all_lanes() {
    each_seed(|machine| {
        let out = machine.array(32);
        let kernel = function(
            "k",
            vec![
                block(vec![setp(0, |e, l| tid(e, l) < 7)], branch(yes(0), 1, 2)),
                block(vec![], goto(2)),
                block(
                    vec![],
                    Term::Aligned {
                        run: Box::new(|e| {
                            let company = e.mask.count_ones();
                            for lane in crate::lanes::lanes_of(e.mask) {
                                e.regs.r32[0].0[lane] += company;
                            }
                            Ok(())
                        }),
                        next: BlockId(3),
                    },
                ),
                block(vec![store(GLOBAL, Sem::Weak, out, 0, tid)], Term::Exit),
            ],
        );
        machine.finish(&code(vec![kernel]), 1, 32);
        assert_eq!(machine.read(out, 32), [32; 32]);
    });
}

/// One lane waits for another lane of its warp through weak accesses. The manual leaves this undefined; it
/// must still end.
#[test]
fn even_weak_spinning_ends() {
    let machine = Machine::new();
    let flag = machine.array(1);
    let kernel = function(
        "k",
        vec![
            block(vec![setp(0, |_, l| l == 0)], branch(yes(0), 2, 1)),
            block(
                vec![load(GLOBAL, Sem::Weak, flag, 1, |_, _| 0), setp(1, |e, l| r(e, 1, l) == 0)],
                branch(yes(1), 1, 3),
            ),
            block(vec![set(1, |_, _| 1), store(GLOBAL, Sem::Weak, flag, 1, |_, _| 0)], goto(3)),
            block(vec![], Term::Exit),
        ],
    );
    machine.finish(&code(vec![kernel]), 1, 32);
}

/// A random structured program with divergent loops and calls, compared with the same program run thread by
/// thread.
#[test]
fn random_control_flow_agrees_with_running_thread_by_thread() {
    // Blocks 0..n: at block b, x = x * 5 + b + 1; then by (x >> 3) % 3: next block, skip one, or back (at
    // most 40 times). Function 1 has the same graph; block 2 of the kernel calls it.
    const BLOCKS: u32 = 7;
    fn mix(x: u32, block: u32) -> u32 {
        x.wrapping_mul(1_664_525).wrapping_add(block + 1) ^ x >> 7
    }
    fn next(x: u32, block: u32, iterations: u32) -> u32 {
        match (x >> 3) % 3 {
            0 => block + 1,
            1 => (block + 2).min(BLOCKS),
            _ if iterations < 40 => block.saturating_sub(2) + 1,
            _ => block + 1,
        }
    }
    fn thread(mut x: u32, nested: bool) -> u32 {
        let (mut block, mut iterations) = (1, 0);
        while block < BLOCKS {
            x = mix(x, block);
            iterations += 1;
            if block == 2 && !nested {
                x ^= thread(x, true);
            }
            block = next(x, block, iterations);
        }
        x
    }
    let graph = |nested: bool| {
        let mut blocks = vec![block(vec![set(3, |_, _| 0), set(1, |e, l| r(e, 0, l))], goto(1))];
        // Even blocks compute (and call), odd ones choose; graph block b is code blocks 2b - 1 and 2b.
        for b in 1..BLOCKS {
            let compute =
                vec![set(1, move |e, l| mix(r(e, 1, l), b)), set(3, |e, l| r(e, 3, l) + 1), set(2, |_, _| 0)];
            let term = if b == 2 && !nested { call(1, r32(1), r32(2), 2 * b) } else { goto(2 * b) };
            blocks.push(block(compute, term));
            let choose = vec![
                set(1, |e, l| r(e, 1, l) ^ r(e, 2, l)),
                set(4, move |e, l| next(r(e, 1, l), b, r(e, 3, l))),
            ];
            let targets = (0..=BLOCKS).map(|t| BlockId(if t == 0 { 0 } else { 2 * t - 1 })).collect();
            blocks.push(block(choose, Term::Switch { index: Value32::Reg(r32(4)), targets }));
        }
        blocks
    };
    each_seed(|machine| {
        let out = machine.array(256);
        let mut kernel = graph(false);
        kernel[0].steps.insert(0, set(0, gtid));
        kernel.push(block(vec![store(GLOBAL, Sem::Weak, out, 1, gtid)], Term::Exit));
        let mut callee = graph(true);
        callee.push(block(vec![], Term::Ret));
        machine.finish(&code(vec![function("k", kernel), device("f", callee)]), 2, 128);
        let expected: Vec<u32> = (0..256).map(|t| thread(t, false)).collect();
        assert_eq!(machine.read(out, 256), expected);
    });
}

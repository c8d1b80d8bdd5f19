//! Grids, CTAs and barriers, with bound code made by hand.

use crate::bound::{BarrierKind, Term, Value32};
use crate::testkit::*;
use crate::trap::FaultKind;
use ptx::isa::{Sem, Space};

const GLOBAL: Space = Space::Global;
const SHARED: Space = Space::Shared;

/// Threads and seeds that a schedule-sensitive test runs with.
fn schedules() -> impl Iterator<Item = (u32, u64)> {
    [1, 2, 4].into_iter().flat_map(|threads| (0..6).map(move |seed| (threads, seed)))
}

fn each_schedule(mut test: impl FnMut(&mut Machine)) {
    for (threads, seed) in schedules() {
        let mut machine = Machine::new();
        (machine.threads, machine.seed) = (threads, seed);
        test(&mut machine);
    }
}

fn trap_of(
    machine: &Machine,
    code: &std::sync::Arc<crate::bound::Code>,
    block: u32,
) -> crate::sched::GridTrap {
    machine.run(code, 1, block).trap.expect("a trap")
}

// covers: mach.thread_ids mach.warp_formation
#[test]
fn threads_are_numbered_x_first_and_the_last_warp_is_partial() {
    let machine = Machine::new();
    let (nx, ny, nz) = (5u32, 3, 3);
    let out = machine.array(2 * nx * ny * nz);
    let kernel = function(
        "k",
        vec![block(
            vec![
                set(0, |e, l| {
                    let [x, y, z] = e.warp.tid_of(l);
                    x + 100 * y + 10_000 * z + 1_000_000 * e.warp.ctaid[2]
                }),
                store(GLOBAL, Sem::Weak, out, 0, move |e, l| tid(e, l) + e.warp.ctaid[2] * nx * ny * nz),
            ],
            Term::Exit,
        )],
    );
    assert!(machine.run_shape(&code(vec![kernel]), [1, 1, 2], [nx, ny, nz], None).trap.is_none());
    let found = machine.read(out, 2 * nx * ny * nz);
    let mut expected = Vec::new();
    for c in 0..2 {
        for z in 0..nz {
            for y in 0..ny {
                for x in 0..nx {
                    expected.push(x + 100 * y + 10_000 * z + 1_000_000 * c);
                }
            }
        }
    }
    assert_eq!(found, expected);
}

// covers: mach.grid
#[test]
fn every_cta_runs_once_whatever_the_schedule() {
    each_schedule(|machine| {
        let out = machine.array(1000 * 40);
        let kernel = function(
            "k",
            vec![block(
                vec![
                    load(GLOBAL, Sem::Weak, out, 0, gtid),
                    set(0, |e, l| r(e, 0, l) + gtid(e, l) + 1),
                    store(GLOBAL, Sem::Weak, out, 0, gtid),
                ],
                Term::Exit,
            )],
        );
        machine.finish(&code(vec![kernel]), 1000, 40);
        assert_eq!(machine.read(out, 40_000), (1..=40_000).collect::<Vec<_>>());
    });
}

/// Reverses 256 words of a CTA through shared memory.
#[test]
fn bar_sync_orders_shared_memory() {
    each_schedule(|machine| {
        machine.shared = 1024;
        let out = machine.array(8 * 256);
        let kernel = function(
            "k",
            vec![
                block(vec![set(0, gtid), store(SHARED, Sem::Weak, 0, 0, tid)], bar_sync(0, 1)),
                block(
                    vec![
                        load(SHARED, Sem::Weak, 0, 1, |e, l| 255 - tid(e, l)),
                        store(GLOBAL, Sem::Weak, out, 1, gtid),
                    ],
                    Term::Exit,
                ),
            ],
        );
        machine.finish(&code(vec![kernel]), 8, 256);
        let expected: Vec<u32> = (0..8).flat_map(|cta| (0..256).map(move |t| cta * 256 + 255 - t)).collect();
        assert_eq!(machine.read(out, 2048), expected);
    });
}

/// A loop of barriers: in each iteration every thread adds its neighbour's value of the previous iteration.
#[test]
fn barriers_are_reusable_in_loops() {
    each_schedule(|machine| {
        machine.shared = 4 * 96;
        let out = machine.array(96);
        let next = |e: &crate::bound::Exec<'_>, l: usize| (tid(e, l) + 1) % 96;
        let kernel = function(
            "k",
            vec![
                block(vec![set(0, tid), set(1, |_, _| 0)], goto(1)),
                block(vec![store(SHARED, Sem::Weak, 0, 0, tid)], bar_sync(3, 2)),
                block(vec![load(SHARED, Sem::Weak, 0, 2, next)], bar_sync(3, 3)),
                block(
                    vec![
                        set(0, |e, l| r(e, 0, l).wrapping_add(r(e, 2, l))),
                        set(1, |e, l| r(e, 1, l) + 1),
                        setp(0, |e, l| r(e, 1, l) < 10),
                    ],
                    branch(yes(0), 1, 4),
                ),
                block(vec![store(GLOBAL, Sem::Weak, out, 0, tid)], Term::Ret),
            ],
        );
        machine.finish(&code(vec![kernel]), 1, 96);
        let mut expected: Vec<u32> = (0..96).collect();
        for _ in 0..10 {
            expected = (0..96).map(|i| expected[i].wrapping_add(expected[(i + 1) % 96])).collect();
        }
        assert_eq!(machine.read(out, 96), expected);
    });
}

#[test]
fn reductions_count_and_combine_predicates_of_live_threads() {
    each_schedule(|machine| {
        // 70 threads: the last warp has 6. Lanes 0 to 9 of warp 0 exit before the barrier.
        let out = machine.array(3 * 70);
        let kernel = function(
            "k",
            vec![
                block(vec![setp(0, |e, l| tid(e, l) < 10)], branch(yes(0), 1, 2)),
                block(vec![], Term::Exit),
                block(
                    vec![setp(1, |e, l| tid(e, l).is_multiple_of(3))],
                    bar_red(BarrierKind::Popc, 1, None, yes(1), r32(1), 3),
                ),
                block(
                    vec![setp(2, |e, l| tid(e, l) >= 10)],
                    bar_red(
                        BarrierKind::And,
                        1,
                        None,
                        yes(2),
                        ptx::ir::Reg { class: ptx::ir::RegClass::Pred, index: 3 },
                        4,
                    ),
                ),
                block(
                    vec![setp(4, |e, l| tid(e, l) != 69)],
                    bar_red(
                        BarrierKind::Or,
                        1,
                        None,
                        no(4),
                        ptx::ir::Reg { class: ptx::ir::RegClass::Pred, index: 5 },
                        5,
                    ),
                ),
                block(
                    vec![
                        store(GLOBAL, Sem::Weak, out, 1, |e, l| 3 * tid(e, l)),
                        set(2, |e, l| e.regs.pred[3] >> l & 1),
                        store(GLOBAL, Sem::Weak, out, 2, |e, l| 3 * tid(e, l) + 1),
                        set(2, |e, l| e.regs.pred[5] >> l & 1),
                        store(GLOBAL, Sem::Weak, out, 2, |e, l| 3 * tid(e, l) + 2),
                    ],
                    Term::Exit,
                ),
            ],
        );
        machine.finish(&code(vec![kernel]), 1, 70);
        let count = (10..70).filter(|t| t % 3 == 0).count() as u32;
        let expected: Vec<u32> =
            (0..70).flat_map(|t| if t < 10 { [0, 0, 0] } else { [count, 1, 1] }).collect();
        assert_eq!(machine.read(out, 210), expected);
    });
}

#[test]
fn and_is_false_where_one_is_false_and_or_where_none_is_true() {
    let machine = Machine::new();
    let out = machine.array(64);
    let pred = |index| ptx::ir::Reg { class: ptx::ir::RegClass::Pred, index };
    let kernel = function(
        "k",
        vec![
            block(
                vec![setp(0, |e, l| tid(e, l) != 63)],
                bar_red(BarrierKind::And, 0, None, yes(0), pred(1), 1),
            ),
            block(vec![setp(0, |_, _| true)], bar_red(BarrierKind::Or, 0, None, no(0), pred(2), 2)),
            block(
                vec![
                    set(0, |e, l| (e.regs.pred[1] >> l & 1) + 2 * (e.regs.pred[2] >> l & 1) + 4),
                    store(GLOBAL, Sem::Weak, out, 0, tid),
                ],
                Term::Exit,
            ),
        ],
    );
    machine.finish(&code(vec![kernel]), 1, 64);
    assert_eq!(machine.read(out, 64), [4; 64]);
}

/// The producer and consumer of the manual: warp 0 produces, warp 1 consumes, with `arrive` and thread
/// counts. PTX ISA §9.7.12.1.
#[test]
fn arrive_does_not_wait() {
    each_schedule(|machine| {
        machine.shared = 128;
        let out = machine.array(10 * WARP);
        let counted = |kind, id, next| barrier(kind, true, Value32::Imm(id), Some(64), next);
        let kernel = function(
            "k",
            vec![
                block(vec![set(0, |_, _| 0), setp(0, |e, _| e.warp.warpid == 0)], branch(yes(0), 1, 4)),
                // Producer: item, "full" (0), wait for "empty" (1).
                block(
                    vec![set(1, |e, l| 1000 * r(e, 0, l) + tid(e, l)), store(SHARED, Sem::Weak, 0, 1, tid)],
                    counted(BarrierKind::Arrive, 0, 2),
                ),
                block(vec![], counted(BarrierKind::Sync, 1, 3)),
                block(
                    vec![set(0, |e, l| r(e, 0, l) + 1), setp(1, |e, l| r(e, 0, l) < 10)],
                    branch(yes(1), 1, 7),
                ),
                // Consumer: wait for "full", take, "empty".
                block(vec![], counted(BarrierKind::Sync, 0, 5)),
                block(
                    vec![
                        load(SHARED, Sem::Weak, 0, 1, |_, l| l as u32),
                        store(GLOBAL, Sem::Weak, out, 1, |e, l| r(e, 0, l) * WARP + l as u32),
                    ],
                    counted(BarrierKind::Arrive, 1, 6),
                ),
                block(
                    vec![set(0, |e, l| r(e, 0, l) + 1), setp(1, |e, l| r(e, 0, l) < 10)],
                    branch(yes(1), 4, 7),
                ),
                block(vec![], Term::Exit),
            ],
        );
        machine.finish(&code(vec![kernel]), 1, 64);
        let expected: Vec<u32> = (0..10).flat_map(|item| (0..WARP).map(move |l| 1000 * item + l)).collect();
        assert_eq!(machine.read(out, 10 * WARP), expected);
    });
}

#[test]
fn lanes_reach_an_unaligned_barrier_through_different_instructions() {
    each_schedule(|machine| {
        machine.shared = 256;
        let out = machine.array(64);
        let sync = |next| barrier(BarrierKind::Sync, false, Value32::Imm(2), None, next);
        let kernel = function(
            "k",
            vec![
                block(
                    vec![
                        set(0, tid),
                        store(SHARED, Sem::Weak, 0, 0, tid),
                        setp(0, |e, l| tid(e, l).is_multiple_of(2)),
                    ],
                    branch(yes(0), 1, 2),
                ),
                block(vec![], sync(3)),
                block(vec![], sync(3)),
                block(
                    vec![
                        load(SHARED, Sem::Weak, 0, 1, |e, l| 63 - tid(e, l)),
                        store(GLOBAL, Sem::Weak, out, 1, tid),
                    ],
                    Term::Exit,
                ),
            ],
        );
        machine.finish(&code(vec![kernel]), 1, 64);
        assert_eq!(machine.read(out, 64), (0..64).rev().collect::<Vec<_>>());
    });
}

// covers: mach.exit_barrier_release
#[test]
fn exiting_warps_leave_barriers_for_all() {
    each_schedule(|machine| {
        let out = machine.array(128);
        let kernel = function(
            "k",
            vec![
                block(vec![set(0, |_, _| 7), setp(0, |e, _| e.warp.warpid % 2 == 0)], branch(yes(0), 1, 2)),
                block(vec![], Term::Exit),
                block(vec![], bar_sync(0, 3)),
                block(vec![store(GLOBAL, Sem::Weak, out, 0, tid)], Term::Exit),
            ],
        );
        machine.finish(&code(vec![kernel]), 1, 128);
        let expected: Vec<u32> = (0..128).map(|t| if t / 32 % 2 == 1 { 7 } else { 0 }).collect();
        assert_eq!(machine.read(out, 128), expected);
    });
}

#[test]
fn misused_barriers_trap() {
    let trap = |term: Term| {
        let kernel =
            function("k", vec![block(vec![set(0, |_, l| l as u32)], term), block(vec![], Term::Exit)]);
        trap_of(&Machine::new(), &code(vec![kernel]), 32).stopped.fault.kind
    };
    let bad = |kind: FaultKind, word: &str| match kind {
        FaultKind::BadBarrier(why) => assert!(why.contains(word), "{why}"),
        other => panic!("{other:?}"),
    };
    bad(trap(bar_sync(16, 1)), "barrier 16 does not exist");
    bad(trap(barrier(BarrierKind::Sync, true, Value32::Imm(0), Some(33), 1)), "33");
    bad(trap(barrier(BarrierKind::Arrive, true, Value32::Imm(0), Some(0), 1)), "count of 0");
    bad(trap(barrier(BarrierKind::Sync, true, Value32::Reg(r32(0)), None, 1)), "different barriers");
}

// covers: ins.barrier.divergent
#[test]
fn aligned_barrier_through_different_instructions_traps() {
    let machine = Machine::new();
    let kernel = function(
        "k",
        vec![
            block(vec![setp(0, |e, l| tid(e, l) < 16)], branch(yes(0), 1, 2)),
            block(vec![], bar_sync(0, 3)),
            block(vec![], bar_sync(0, 3)),
            block(vec![], Term::Exit),
        ],
    );
    let trap = trap_of(&machine, &code(vec![kernel]), 32);
    assert!(
        matches!(&trap.stopped.fault.kind, FaultKind::BadBarrier(why) if why.contains("different instructions"))
    );
}

#[test]
fn mixed_counts_and_reductions_trap() {
    let machine = Machine::new();
    let pred = ptx::ir::Reg { class: ptx::ir::RegClass::Pred, index: 1 };
    let mixed = function(
        "k",
        vec![
            block(vec![setp(0, |e, _| e.warp.warpid == 0)], branch(yes(0), 1, 2)),
            block(vec![], bar_sync(0, 3)),
            block(vec![], bar_red(BarrierKind::And, 0, None, yes(0), pred, 3)),
            block(vec![], Term::Exit),
        ],
    );
    let kind = trap_of(&machine, &code(vec![mixed]), 64).stopped.fault.kind;
    assert!(matches!(kind, FaultKind::BadBarrier(why) if why.contains("mixed")));
    let counts = function(
        "k",
        vec![
            block(vec![setp(0, |e, _| e.warp.warpid == 0)], branch(yes(0), 1, 2)),
            block(vec![], barrier(BarrierKind::Sync, true, Value32::Imm(0), Some(96), 3)),
            block(vec![], barrier(BarrierKind::Sync, true, Value32::Imm(0), Some(64), 3)),
            block(vec![], Term::Exit),
        ],
    );
    let kind = trap_of(&machine, &code(vec![counts]), 64).stopped.fault.kind;
    assert!(matches!(kind, FaultKind::BadBarrier(why) if why.contains("96 and 64")));
}

#[test]
fn a_deadlock_says_who_waits_where() {
    each_schedule(|machine| {
        // Warp 0 waits at barrier 0 (block 1, line 2), warp 1 at barrier 5 (block 2, line 3).
        let kernel = function(
            "k",
            vec![
                block(vec![setp(0, |e, _| e.warp.warpid == 0)], branch(yes(0), 1, 2)),
                block(vec![], bar_sync(0, 3)),
                block(vec![], bar_sync(5, 3)),
                block(vec![], Term::Exit),
            ],
        );
        let trap = machine.run(&code(vec![kernel]), 1, 64).trap.expect("a trap");
        let FaultKind::Deadlock(who) = trap.stopped.fault.kind else { panic!("no deadlock") };
        for part in [
            "warp 0: lanes 0xffffffff at `line 02` (line 2) (barrier 0: 1 of 2 warps",
            "warp 1:",
            "(line 3)",
            "barrier 5",
        ] {
            assert!(who.contains(part), "`{part}` is not in: {who}");
        }
    });
}

/// Lanes of one warp, and of several, contend for a lock: the count is correct and every lane gets the lock.
// covers: mach.its mach.forward_progress
#[test]
fn lanes_contend_for_a_lock() {
    each_schedule(|machine| {
        let lock = machine.array(1);
        let count = machine.array(1);
        let kernel = function(
            "k",
            vec![
                block(vec![set(0, |_, _| 1), set(2, |_, _| 0)], goto(1)),
                // do old = cas(lock, 0, 1) while old != 0
                block(
                    vec![
                        atom(GLOBAL, lock, 1, 0, |new, old| (old == 0).then_some(new)),
                        setp(0, |e, l| r(e, 1, l) != 0),
                    ],
                    branch(yes(0), 1, 2),
                ),
                // count += 1 without atomics; unlock
                block(
                    vec![
                        load(GLOBAL, Sem::Weak, count, 3, |_, _| 0),
                        set(3, |e, l| r(e, 3, l) + 1),
                        store(GLOBAL, Sem::Weak, count, 3, |_, _| 0),
                        atom(GLOBAL, lock, 4, 2, |new, _| Some(new)),
                    ],
                    goto(3),
                ),
                block(vec![], Term::Exit),
            ],
        );
        machine.finish(&code(vec![kernel]), 2, 64);
        assert_eq!(machine.read(count, 1), [128]);
        assert_eq!(machine.read(lock, 1), [0]);
    });
}

/// The same lock by an exchange that always writes; one lane has its critical section below the spin loop in
/// block order.
#[test]
fn lanes_contend_for_a_lock_by_exchange() {
    each_schedule(|machine| {
        let lock = machine.array(1);
        let count = machine.array(1);
        let kernel = function(
            "k",
            vec![
                block(vec![set(0, |_, _| 1), set(2, |_, _| 0)], goto(1)),
                block(
                    vec![atom(GLOBAL, lock, 1, 0, |new, _| Some(new)), setp(0, |e, l| r(e, 1, l) == 0)],
                    branch(yes(0), 3, 2),
                ),
                block(vec![], goto(1)),
                block(
                    vec![
                        load(GLOBAL, Sem::Volatile, count, 3, |_, _| 0),
                        set(3, |e, l| r(e, 3, l) + 1),
                        store(GLOBAL, Sem::Volatile, count, 3, |_, _| 0),
                        atom(GLOBAL, lock, 4, 2, |new, _| Some(new)),
                    ],
                    Term::Exit,
                ),
            ],
        );
        machine.finish(&code(vec![kernel]), 1, 32);
        assert_eq!(machine.read(count, 1), [32]);
    });
}

/// Warps pass a token through volatile shared memory, three times, in descending order.
#[test]
fn warps_pass_a_token_through_shared_memory() {
    each_schedule(|machine| {
        machine.shared = 4;
        let out = machine.array(3 * 8);
        let turn = |e: &crate::bound::Exec<'_>, l: usize| r(e, 0, l) * 8 + (7 - e.warp.warpid);
        let kernel = function(
            "k",
            vec![
                block(vec![set(0, |_, _| 0)], goto(1)),
                // while the token is not this warp's
                block(
                    vec![
                        load(SHARED, Sem::Volatile, 0, 1, |_, _| 0),
                        setp(0, move |e, l| r(e, 1, l) != turn(e, l)),
                    ],
                    branch(yes(0), 1, 2),
                ),
                block(
                    vec![
                        set(2, |e, _| e.warp.warpid),
                        store(GLOBAL, Sem::Weak, out, 2, turn),
                        set(2, |e, l| r(e, 1, l) + 1),
                        set(0, |e, l| r(e, 0, l) + 1),
                        store(SHARED, Sem::Volatile, 0, 2, |_, _| 0),
                        setp(1, |e, l| r(e, 0, l) < 3),
                    ],
                    branch(yes(1), 1, 3),
                ),
                block(vec![], Term::Exit),
            ],
        );
        machine.finish(&code(vec![kernel]), 1, 256);
        let expected: Vec<u32> = (0..3).flat_map(|_| (0..8).rev()).collect();
        assert_eq!(machine.read(out, 24), expected);
    });
}

/// Each CTA waits for the sum of the CTA before it; with `backwards`, of the CTA after it, which starts
/// later.
fn look_back(machine: &Machine, ctas: u32, backwards: bool) {
    let flags = machine.array(ctas + 2);
    // Entry 0 is ready; CTA c waits for entry c and writes entry c + 1.
    machine.memory.write(flags, &1u32.to_le_bytes()).expect("in bounds");
    let place = move |e: &crate::bound::Exec<'_>| {
        if backwards { ctas - 1 - e.warp.ctaid[0] } else { e.warp.ctaid[0] }
    };
    let kernel = function(
        "k",
        vec![
            block(
                vec![
                    load(GLOBAL, Sem::Acquire, flags, 1, move |e, _| place(e)),
                    setp(0, |e, l| r(e, 1, l) == 0),
                ],
                branch(yes(0), 0, 1),
            ),
            block(
                vec![
                    set(1, move |e, l| r(e, 1, l) + place(e)),
                    store(GLOBAL, Sem::Release, flags, 1, move |e, _| place(e) + 1),
                ],
                Term::Exit,
            ),
        ],
    );
    machine.finish(&code(vec![kernel]), ctas, 33);
    // Entry n is 1 and the sum of 0 to n - 1.
    let expected: Vec<u32> = (0..=ctas).map(|n| 1 + n * n.saturating_sub(1) / 2).collect();
    assert_eq!(machine.read(flags, ctas + 1), expected);
}

#[test]
fn ctas_look_back() {
    each_schedule(|machine| look_back(machine, 200, false));
}

#[test]
fn ctas_wait_for_ctas_with_higher_numbers() {
    each_schedule(|machine| look_back(machine, 80, true));
}

/// A grid-wide barrier by an atomic counter, three times.
#[test]
fn a_grid_barrier_finishes() {
    each_schedule(|machine| {
        let ctas = 60;
        let counter = machine.array(1);
        let out = machine.array(ctas);
        let kernel = function(
            "k",
            vec![
                block(vec![set(0, |_, _| 0), set(5, |_, _| 1)], goto(1)),
                block(
                    vec![setp(0, |e, l| tid(e, l) == 0), set(0, |e, l| r(e, 0, l) + 1)],
                    branch(yes(0), 2, 4),
                ),
                block(vec![atom(GLOBAL, counter, 1, 5, |one, old| Some(old + one))], goto(3)),
                block(
                    vec![
                        load(GLOBAL, Sem::Acquire, counter, 1, |_, _| 0),
                        setp(1, move |e, l| r(e, 1, l) < r(e, 0, l) * ctas),
                    ],
                    branch(yes(1), 3, 4),
                ),
                block(vec![], bar_sync(0, 5)),
                block(vec![setp(2, |e, l| r(e, 0, l) < 3)], branch(yes(2), 1, 6)),
                block(
                    vec![
                        load(GLOBAL, Sem::Weak, counter, 1, |_, _| 0),
                        store(GLOBAL, Sem::Weak, out, 1, |e, _| e.warp.ctaid[0]),
                    ],
                    Term::Exit,
                ),
            ],
        );
        machine.finish(&code(vec![kernel]), ctas, 64);
        assert_eq!(machine.read(out, ctas), vec![3 * ctas; ctas as usize]);
    });
}

#[test]
fn the_first_trap_stops_the_grid_and_says_where() {
    let machine = Machine::new();
    let out = machine.array(40);
    let kernel = function(
        "k",
        vec![
            block(vec![set(0, gtid)], goto(1)),
            block(vec![store(GLOBAL, Sem::Weak, out, 0, gtid)], Term::Exit),
        ],
    );
    let outcome = machine.run(&code(vec![kernel]), 4, 16);
    let trap = outcome.trap.expect("a trap");
    assert_eq!(trap.stopped.fault.kind, FaultKind::IllegalAddress);
    assert_eq!((trap.ctaid, trap.tid, trap.warp, trap.stopped.fault.lane), ([2, 0, 0], [8, 0, 0], 0, 8));
    assert_eq!(trap.stopped.span, ptx::Span::new(8, 15));
    let access = trap.stopped.fault.access.expect("an access");
    assert_eq!((access.address, access.bytes, access.write), (out + 160, 4, true));
    let nearest = trap.nearest.expect("prose");
    assert!(
        nearest.starts_with("buffer `out`, 160 bytes at 0x") && nearest.ends_with("0 bytes past its end"),
        "{nearest}"
    );
    // The two CTAs before it have stored all their values.
    assert_eq!(machine.read(out, 32), (0..32).collect::<Vec<_>>());
}

#[test]
fn an_endless_loop_ends_at_the_step_limit_or_when_cancelled() {
    let endless = || code(vec![function("k", vec![block(vec![], goto(1)), block(vec![], goto(1))])]);
    let mut machine = Machine::new();
    machine.max_steps = Some(1000);
    let outcome = machine.run(&endless(), 1, 32);
    assert_eq!(outcome.trap.expect("a trap").stopped.fault.kind, FaultKind::StepLimit);
    assert_eq!(outcome.steps, 1000);
    machine.max_steps = None;
    let cancel = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(true));
    let outcome = machine.run_shape(&endless(), [9, 1, 1], [32, 1, 1], Some(&cancel));
    assert_eq!(outcome.trap.expect("a trap").stopped.fault.kind, FaultKind::Cancelled);
}

#[test]
fn a_seed_replays_its_schedule() {
    // The order in which warps get tickets differs between seeds and is fixed for each seed.
    let order = |seed: u64| {
        let mut machine = Machine::new();
        machine.seed = seed;
        let (ticket, out) = (machine.array(1), machine.array(64));
        let kernel = function(
            "k",
            vec![
                block(vec![set(0, |_, l| u32::from(l == 0)), setp(0, |_, l| l == 0)], branch(yes(0), 1, 2)),
                block(
                    vec![
                        atom(GLOBAL, ticket, 1, 0, |one, old| Some(old + one)),
                        store(GLOBAL, Sem::Weak, out, 1, |e, _| e.warp.ctaid[0] * 8 + e.warp.warpid),
                    ],
                    goto(2),
                ),
                block(vec![], Term::Exit),
            ],
        );
        machine.finish(&code(vec![kernel]), 8, 256);
        machine.read(out, 64)
    };
    assert_eq!(order(0), (0..64).collect::<Vec<_>>());
    assert_eq!(order(7), order(7));
    assert_ne!(order(7), order(0));
    assert_ne!(order(7), order(8));
}

#[test]
fn shared_and_local_memory_start_zeroed_in_every_cta() {
    let mut machine = Machine::new();
    (machine.shared, machine.stack) = (128, 16);
    let out = machine.array(2 * 50 * 32);
    let mut kernel = function(
        "k",
        vec![block(
            vec![
                load(SHARED, Sem::Weak, 0, 0, tid),
                load(Space::Local, Sem::Weak, 0, 1, |_, _| 2),
                store(GLOBAL, Sem::Weak, out, 0, |e, l| 2 * gtid(e, l)),
                store(GLOBAL, Sem::Weak, out, 1, |e, l| 2 * gtid(e, l) + 1),
                set(0, |_, _| 1),
                store(SHARED, Sem::Weak, 0, 0, tid),
                store(Space::Local, Sem::Weak, 0, 0, |_, _| 2),
            ],
            Term::Exit,
        )],
    );
    kernel.frame_bytes = 16;
    machine.finish(&code(vec![kernel]), 50, 32);
    assert_eq!(machine.read(out, 3200), [0; 3200]);
}

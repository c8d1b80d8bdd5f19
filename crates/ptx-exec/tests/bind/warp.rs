//! Instructions in which the lanes of a warp act together, and special registers.

use super::words;

#[test]
fn shuffles_read_other_lanes() {
    let lane = |mode: &str, b: u32, c: u32| {
        let body = format!(
            "mul.lo.u32 %r1, %r0, 3;\nshfl.sync.{mode}.b32 %r2|%p1, %r1, {b}, {c:#x}, -1;\n\
                            @!%p1 add.u32 %r2, %r2, 1000;\nst.global.u32 [%d1], %r2;"
        );
        words("", &body)
    };
    // Lane i reads lane i + 4; the last four keep their own value and their predicate is false.
    let down: Vec<u32> = (0..32).map(|i| if i + 4 < 32 { 3 * (i + 4) } else { 3 * i + 1000 }).collect();
    assert_eq!(lane("down", 4, 0x1f), down);
    let up: Vec<u32> = (0..32).map(|i| if i >= 3 { 3 * (i - 3) } else { 3 * i + 1000 }).collect();
    assert_eq!(lane("up", 3, 0), up);
    let butterfly: Vec<u32> = (0..32).map(|i| 3 * (i ^ 5)).collect();
    assert_eq!(lane("bfly", 5, 0x1f), butterfly);
    // Segments of eight lanes: each lane reads lane 2 of its segment.
    let index: Vec<u32> = (0..32).map(|i| 3 * (i / 8 * 8 + 2)).collect();
    assert_eq!(lane("idx", 2, 0x181f), index);
}

#[test]
fn shuffles_without_sync_are_among_the_active_lanes() {
    let body = "mul.lo.u32 %r1, %r0, 3;\nshfl.bfly.b32 %r2, %r1, 1, 0x1f;\nvote.ballot.b32 %r3, %p0;\n\
                st.global.u32 [%d1], %r2;";
    let text = super::kernel("", &format!("mul.wide.u32 %d1, %r0, 4;\nadd.u64 %d1, %d0, %d1;\n{body}"));
    let text = text.replace("sm_70", "sm_60");
    let found = super::run(&text, &[0; 128]);
    let expected: Vec<u8> = (0..32u32).flat_map(|i| (3 * (i ^ 1)).to_le_bytes()).collect();
    assert_eq!(found, expected);
}

#[test]
fn votes_count_the_lanes_of_the_mask() {
    // Lanes below 20 vote; the predicate is true in lanes 4 and up.
    let body = |vote: &str, result: &str| {
        format!(
            "mov.u32 %r2, 99;\nsetp.ge.u32 %p1, %r0, 20;\n@%p1 bra DONE;\nsetp.ge.u32 %p2, %r0, 4;\n\
                 vote.sync.{vote} {result}, %p2, 0xfffff;\n{}DONE:\nst.global.u32 [%d1], %r2;",
            if result == "%p3" { "selp.u32 %r2, 1, 0, %p3;\n" } else { "" }
        )
    };
    let expect = |value: u32| (0..32).map(|i| if i < 20 { value } else { 99 }).collect::<Vec<u32>>();
    assert_eq!(words("", &body("ballot.b32", "%r2")), expect(0xffff0));
    assert_eq!(words("", &body("any.pred", "%p3")), expect(1));
    assert_eq!(words("", &body("all.pred", "%p3")), expect(0));
    assert_eq!(words("", &body("uni.pred", "%p3")), expect(0));
}

#[test]
fn matches_find_equal_values() {
    let body = "and.b32 %r1, %r0, 3;\nmatch.any.sync.b32 %r2, %r1, -1;\nst.global.u32 [%d1], %r2;";
    assert_eq!(words("", body), (0..32).map(|i| 0x1111_1111 << (i & 3)).collect::<Vec<u32>>());
    let body = "mov.u64 %d2, 0x500000000;\nmatch.all.sync.b64 %r2|%p1, %d2, -1;\n@!%p1 mov.u32 %r2, 1;\nst.global.u32 [%d1], %r2;";
    assert_eq!(words("", body), [u32::MAX; 32]);
    let body = "match.all.sync.b32 %r2|%p1, %r0, -1;\n@!%p1 add.u32 %r2, %r2, 1;\nst.global.u32 [%d1], %r2;";
    assert_eq!(words("", body), [1; 32]);
}

#[test]
fn special_registers() {
    let mask = u64::from(u32::MAX);
    type OfThread = fn(u64) -> u64;
    let cases: &[(&str, OfThread)] = &[
        ("%tid.x", |i| i),
        ("%tid.y", |_| 0),
        ("%ntid.x", |_| 32),
        ("%ntid.z", |_| 1),
        ("%ctaid.x", |_| 0),
        ("%nctaid.y", |_| 1),
        ("%laneid", |i| i),
        ("%warpid", |_| 0),
        ("%nwarpid", |_| 1),
        ("%lanemask_eq", |i| 1 << i),
        ("%lanemask_lt", |i| (1 << i) - 1),
        ("%lanemask_le", |i| (2 << i) - 1),
        ("%lanemask_ge", |i| !((1 << i) - 1)),
        ("%lanemask_gt", |i| !((2 << i) - 1)),
        ("%dynamic_smem_size", |_| 0),
        ("%envreg3", |_| 0),
        ("%pm1", |_| 0),
    ];
    for (name, value) in cases {
        let found = words("", &format!("mov.u32 %r1, {name};\nst.global.u32 [%d1], %r1;"));
        let expected: Vec<u32> = (0..32).map(|i| (value(i) & mask) as u32).collect();
        assert_eq!(found, expected, "{name}");
    }
    let clocks = words(
        "",
        "mov.u32 %r1, %clock;\nmov.u32 %r2, %clock;\nsetp.lt.u32 %p1, %r1, %r2;\nselp.u32 %r3, 1, 0, %p1;\n\
                            mov.u64 %d2, %clock64;\nmov.u64 %d3, %globaltimer;\nst.global.u32 [%d1], %r3;",
    );
    assert_eq!(clocks, [1; 32]);
}

#[test]
fn active_lanes() {
    let body =
        "mov.u32 %r1, 0;\nsetp.lt.u32 %p1, %r0, 3;\n@%p1 activemask.b32 %r1;\nst.global.u32 [%d1], %r1;";
    let expected: Vec<u32> = (0..32).map(|i| if i < 3 { 7 } else { 0 }).collect();
    assert_eq!(words("", body), expected);
}

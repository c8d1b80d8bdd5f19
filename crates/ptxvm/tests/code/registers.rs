//! Special registers (PTX ISA chapter 10), read by `mov` in launches of several shapes. Expected values
//! follow from the launch; for registers that count or that the machine chooses, the manual's guarantees are
//! tested.

use ptxvm::{Arg, Launch, Vm};

/// A kernel whose thread with the linear number T of the whole grid leaves `values` (8 bytes each) at `out`.
fn kernel(values: &[&str]) -> String {
    let mut body = String::new();
    for (index, value) in values.iter().enumerate() {
        body += &format!("    {value}\n    st.global.b64 [%out+{}], %v;\n", index * 8);
    }
    format!(
        ".version 6.4
.target sm_70
.address_size 64
.extern .shared .align 4 .b8 dynamic[];
.visible .entry run(.param .u64 out)
{{
    .shared .align 4 .b8 fixed[112];
    .reg .b64 %out, %v, %w;
    .reg .b32 %t, %n, %x;
    .reg .b16 %h;
    mov.u32 %x, fixed;
    st.shared.b32 [%x], 0;
    mov.u32 %x, dynamic;
    // The thread in its CTA: x + y*nx + z*nx*ny.
    mov.u32 %t, %tid.z;
    mov.u32 %n, %ntid.y;
    mov.u32 %x, %tid.y;
    mad.lo.u32 %t, %t, %n, %x;
    mov.u32 %n, %ntid.x;
    mov.u32 %x, %tid.x;
    mad.lo.u32 %t, %t, %n, %x;
    mul.wide.u32 %w, %t, {stride};
    // The CTA in the grid, times its threads.
    mov.u32 %t, %ctaid.z;
    mov.u32 %n, %nctaid.y;
    mov.u32 %x, %ctaid.y;
    mad.lo.u32 %t, %t, %n, %x;
    mov.u32 %n, %nctaid.x;
    mov.u32 %x, %ctaid.x;
    mad.lo.u32 %t, %t, %n, %x;
    mov.u32 %n, %ntid.x;
    mul.lo.u32 %t, %t, %n;
    mov.u32 %n, %ntid.y;
    mul.lo.u32 %t, %t, %n;
    mov.u32 %n, %ntid.z;
    mul.lo.u32 %t, %t, %n;
    ld.param.u64 %out, [out];
    add.u64 %out, %out, %w;
    mul.wide.u32 %w, %t, {stride};
    add.u64 %out, %out, %w;
{body}    ret;
}}",
        stride = values.len() * 8
    )
}

/// `mov.u32` of a register, widened.
fn word(register: &str) -> String {
    format!("mov.u32 %x, {register}; cvt.u64.u32 %v, %x;")
}

/// What each thread of the grid reads, in launches one after the other on one device.
fn launches(
    values: &[&str],
    grid: [u32; 3],
    block: [u32; 3],
    shared: u32,
    times: usize,
) -> Vec<Vec<Vec<u64>>> {
    let vm = Vm::new().expect("a device");
    let kernel = vm.load("registers", &kernel(values)).and_then(|m| m.kernel("run")).expect("it loads");
    let threads = grid.iter().chain(&block).product::<u32>() as usize;
    let run = |_| {
        let out = vm.zeros::<u64>(threads * values.len()).expect("memory");
        let launch =
            Launch::new(grid, block).shared(shared).args(&kernel, &[Arg::buffer(&out)]).expect("it fits");
        vm.launch(&kernel, &launch).expect("it runs");
        out.read().expect("the results").chunks(values.len()).map(<[u64]>::to_vec).collect()
    };
    (0..times).map(run).collect()
}

fn launch(values: &[&str], grid: [u32; 3], block: [u32; 3]) -> Vec<Vec<u64>> {
    launches(values, grid, block, 0, 1).remove(0)
}

// covers: sreg.tid sreg.ntid sreg.ctaid sreg.nctaid mach.thread_ids mach.grid
#[test]
fn places_in_the_grid_have_three_components_and_a_fourth_that_is_zero() {
    let registers = ["%tid", "%ntid", "%ctaid", "%nctaid"];
    let reads: Vec<String> =
        registers.iter().flat_map(|r| ["x", "y", "z", "w"].map(|c| word(&format!("{r}.{c}")))).collect();
    let reads: Vec<&str> = reads.iter().map(String::as_str).collect();
    for (grid, block) in [([2, 3, 2], [5, 3, 2]), ([1, 1, 1], [1, 1, 64]), ([3, 1, 1], [33, 1, 1])] {
        let mut threads = launch(&reads, grid, block).into_iter();
        let all = |n: [u32; 3]| {
            (0..n[2]).flat_map(move |z| (0..n[1]).flat_map(move |y| (0..n[0]).map(move |x| [x, y, z])))
        };
        for ctaid in all(grid) {
            for tid in all(block) {
                let expected: Vec<u64> = [tid, block, ctaid, grid]
                    .iter()
                    .flat_map(|v| [v[0], v[1], v[2], 0])
                    .map(u64::from)
                    .collect();
                assert_eq!(threads.next(), Some(expected), "{ctaid:?} {tid:?}");
            }
        }
    }
}

// covers: sreg.tid sreg.ntid sreg.ctaid sreg.nctaid ins.mov.sreg
#[test]
fn places_are_read_by_halves() {
    let half = |register: &str| format!("mov.u16 %h, {register}; cvt.u64.u16 %v, %h;");
    let reads = [
        half("%tid.x"),
        half("%ntid.y"),
        half("%ctaid.x"),
        half("%nctaid.x"),
        "cvt.u32.u16 %x, %tid.x; cvt.u64.u32 %v, %x;".to_owned(),
        "cvt.u32.u16 %x, %ctaid.x; cvt.u64.u32 %v, %x;".to_owned(),
    ];
    // 70000 CTAs: the low half of 70000 is 4464.
    let threads = launch(&reads.each_ref().map(String::as_str), [70_000, 1, 1], [2, 3, 1]);
    for cta in [0, 1, 65_535, 65_536, 69_999] {
        for thread in 0..6 {
            let expected = [thread % 2, 3, cta & 0xffff, 4464, thread % 2, cta & 0xffff];
            assert_eq!(threads[(cta * 6 + thread) as usize], expected, "{cta} {thread}");
        }
    }
}

// covers: sreg.laneid sreg.warpid sreg.nwarpid sreg.lanemask_eq sreg.lanemask_le sreg.lanemask_lt sreg.lanemask_ge
// covers: sreg.lanemask_gt mach.warp_formation
#[test]
fn warps_are_cut_from_the_linear_order_of_threads() {
    let names = [
        "laneid",
        "lanemask_eq",
        "lanemask_le",
        "lanemask_lt",
        "lanemask_ge",
        "lanemask_gt",
        "warpid",
        "nwarpid",
    ];
    let reads = names.map(|name| word(&format!("%{name}")));
    let threads = launch(&reads.each_ref().map(String::as_str), [2, 1, 1], [7, 5, 2]);
    let mut warps = std::collections::BTreeMap::new();
    for (number, found) in threads.iter().enumerate() {
        let (cta, thread) = (number / 70, number % 70);
        let lane = (thread % 32) as u64;
        let lower = (1 << lane) - 1;
        let all = u64::from(u32::MAX);
        let masks = [1 << lane, lower | 1 << lane, lower, all & !lower, all & !lower & !(1 << lane)];
        assert_eq!((found[0], &found[1..6]), (lane, &masks[..]), "thread {thread}");
        assert!(found[6] < found[7], "a warp {} of {}", found[6], found[7]);
        // All threads of a warp agree, and no other warp of the CTA has the number.
        assert_eq!(*warps.entry((cta, found[6])).or_insert(thread / 32), thread / 32);
    }
    assert_eq!(warps.len(), 6);
}

// covers: sreg.smid sreg.nsmid sreg.gridid sreg.envreg sreg.pm0_3 sreg.pm4_7 sreg.pm64
#[test]
fn what_the_machine_chooses_is_what_the_manual_promises() {
    let reads = [
        word("%smid"),
        word("%nsmid"),
        "mov.u64 %v, %gridid;".to_owned(),
        word("%gridid"),
        "mov.u16 %h, %gridid; cvt.u64.u16 %v, %h;".to_owned(),
        word("%envreg0"),
        word("%envreg31"),
        word("%pm0"),
        "mov.u64 %v, %pm0_64;".to_owned(),
        word("%pm7"),
        "mov.u64 %v, %pm7_64;".to_owned(),
        "cvt.u32.u16 %x, %gridid; cvt.u64.u32 %v, %x;".to_owned(),
    ];
    let runs = launches(&reads.each_ref().map(String::as_str), [3, 1, 1], [40, 1, 1], 0, 3);
    let mut grids = Vec::new();
    for threads in &runs {
        let first = &threads[0];
        for found in threads {
            assert!(found[0] < found[1], "SM {} of {}", found[0], found[1]);
            // One number for the whole grid, whose low bits narrow reads give; %envreg does not change during
            // a launch.
            assert_eq!(found[1..7], first[1..7]);
            assert_eq!(
                (found[3], found[4], found[11]),
                (found[2] & 0xffff_ffff, found[2] & 0xffff, found[2] & 0xffff)
            );
            assert_eq!((found[8] & 0xffff_ffff, found[10] & 0xffff_ffff), (found[7], found[9]));
        }
        grids.push(first[2]);
    }
    grids.dedup();
    assert_eq!(grids.len(), runs.len(), "every launch has a number of its own: {grids:?}");
}

// covers: sreg.clock sreg.clock_hi sreg.clock64 sreg.globaltimer sreg.globaltimer_lo_hi
#[test]
fn clocks_never_go_back() {
    // Between two reads of the whole, the halves are read: they lie between, as numbers of 64 bits.
    let halves =
        |low: &str, high: &str| format!("mov.u32 %x, {low}; mov.u32 %n, {high}; mov.b64 %v, {{%x, %n}};");
    let reads = [
        "mov.u64 %v, %clock64;".to_owned(),
        halves("%clock", "%clock_hi"),
        "mov.u64 %v, %clock64;".to_owned(),
        "mov.u64 %v, %globaltimer;".to_owned(),
        halves("%globaltimer_lo", "%globaltimer_hi"),
        "nanosleep.u32 1000; mov.u64 %v, %globaltimer;".to_owned(),
    ];
    for found in launch(&reads.each_ref().map(String::as_str), [2, 1, 1], [64, 1, 1]) {
        assert!(found[0] < found[1] && found[1] < found[2], "{found:?}");
        assert!(found[3] <= found[4] && found[4] <= found[5], "{found:?}");
    }
}

// covers: sreg.total_smem_size sreg.dynamic_smem_size
#[test]
fn shared_memory_has_the_size_that_was_asked_for() {
    let reads = [word("%total_smem_size"), word("%dynamic_smem_size")];
    // Besides 112 bytes of variables; the total is a multiple of 256 bytes.
    for (dynamic, total) in [(0, 256), (144, 256), (145, 512), (1000, 1280)] {
        let found = launches(&reads.each_ref().map(String::as_str), [1, 1, 1], [3, 1, 1], dynamic, 1);
        assert_eq!(found[0], vec![vec![total, u64::from(dynamic)]; 3], "{dynamic} bytes");
    }
}

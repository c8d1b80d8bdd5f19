//! Runs a kernel that stores one word per thread in all engines and in all ways that native code has.
//!
//! Native code of every level of this machine, on one thread and on two, must agree with the interpreter: the
//! same words, instruction counts and traps. Unless `PTXVM_TESTS` is `full`, some combinations are omitted.
#![allow(dead_code, reason = "each test uses a part of it")]

use crate::levels;
use ptxvm::{Arg, Cpu, Engine, ErrorKind, Launch, Options, Target, Vm};
use std::time::Duration;

/// What a launch did: words and instructions, or its trap.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Done {
    pub(crate) words: Vec<u32>,
    pub(crate) counts: (u64, u64),
    pub(crate) events: [u64; 16],
    pub(crate) trap: Option<String>,
}

pub(crate) struct Test {
    pub(crate) text: String,
    pub(crate) ctas: u32,
}

pub(crate) const HEAD: &str = ".version 7.0\n.target sm_70\n.address_size 64\n";
/// Register `%t` is the thread's number in its CTA, `%n` the CTA's size, `%g` the thread's number, `%out` the
/// address of its word.
pub(crate) const START: &str = "
    .reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<30>, %t, %n, %g, %c; .reg .b64 %rd<20>, %out; .reg .f32 %f<9>;
    mov.u32 %t, %tid.x; mov.u32 %n, %ntid.x; mov.u32 %c, %ctaid.x; mad.lo.u32 %g, %c, %n, %t;
    ld.param.u64 %out, [out]; cvta.to.global.u64 %out, %out; mul.wide.u32 %rd1, %g, 4; add.u64 %out, %out, %rd1;
";

/// A kernel of that body; `before` stands in front of it.
pub(crate) fn test(before: &str, body: &str) -> Test {
    let text = format!("{HEAD}{before}\n.visible .entry k(.param .u64 out) {{{START}{body}}}\n");
    // Enough that threads take several at once.
    Test { text, ctas: 17 }
}

/// A report in which addresses are counted from that of the buffer: each device has addresses of its own.
fn relative(report: String, buffer: u64) -> String {
    let address = |word: &str| u64::from_str_radix(word.strip_prefix("0x")?, 16).ok();
    let words = report.split(' ').map(|word| {
        let end = word.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(word.len());
        match address(&word[..end]).filter(|address| address.abs_diff(buffer) < 1 << 20) {
            Some(address) => {
                format!("buffer{:+}{}", address.wrapping_sub(buffer).cast_signed(), &word[end..])
            }
            None => word.to_owned(),
        }
    });
    words.collect::<Vec<_>>().join(" ")
}

impl Test {
    /// Launches a kernel on several numbers of OS threads; the same words and traps come each time, else this
    /// fails.
    pub(crate) fn run(
        &self,
        block: u32,
        engine: Engine,
        target: Option<Target>,
        team: Option<u32>,
        threads: &[u32],
    ) -> Done {
        let vm = Vm::with(Options { target, team, cache: levels::cache(), ..Options::default() })
            .expect("a device");
        let kernel =
            vm.load("whole.ptx", &self.text).and_then(|module| module.kernel("k")).expect("a kernel");
        let words = vm.zeros::<u32>((self.ctas * block) as usize).expect("memory");
        let launch = Launch::new([self.ctas, 1, 1], [block, 1, 1]).engine(engine);
        let mut launch = launch.args(&kernel, &[Arg::buffer(&words)]).expect("one argument");
        launch.timeout = Some(Duration::from_secs(60));
        let mut done: Option<Done> = None;
        for threads in threads {
            let zeros = vec![0; words.read().expect("words").len()];
            words.write(&zeros).expect("words");
            launch.threads = Some(*threads);
            let (report, trap) = match vm.launch(&kernel, &launch) {
                Ok(report) => (report, None),
                Err(error) => match error.kind() {
                    ErrorKind::Trap(trap, report) => {
                        (report.clone(), Some(relative(trap.to_string(), words.address())))
                    }
                    _ => panic!("{error}"),
                },
            };
            let counts = (report.warp_instructions, report.thread_instructions);
            let now = Done { words: words.read().expect("words"), counts, events: *report.events, trap };
            if let Some(before) = &done {
                assert_eq!((&before.words, &before.trap), (&now.words, &now.trap), "again: {}", self.text);
            }
            done = Some(now);
        }
        done.expect("a launch")
    }

    /// The number of instructions that the interpreter executed in native code with that number of warps as
    /// one.
    pub(crate) fn interpreted(&self, block: u32, team: u32) -> u64 {
        let vm = Vm::with(Options { team: Some(team), ..Options::default() }).expect("a device");
        let kernel =
            vm.load("whole.ptx", &self.text).and_then(|module| module.kernel("k")).expect("a kernel");
        let words = vm.zeros::<u32>((self.ctas * block) as usize).expect("memory");
        let launch = Launch::new([self.ctas, 1, 1], [block, 1, 1]).engine(Engine::Jit).threads(1);
        let launch = launch.args(&kernel, &[Arg::buffer(&words)]).expect("one argument");
        let report = vm.launch(&kernel, &launch).expect("no trap");
        report.warp_instructions - report.ran.native_instructions + report.ran.fallback_instructions
    }

    /// Runs CTAs of these sizes everywhere. `expect`: the word of a thread, by its number in the CTA and the
    /// CTA's size.
    pub(crate) fn check(&self, blocks: &[u32], expect: impl Fn(u32, u32) -> u32) {
        for &block in blocks {
            let want = self.everywhere(block);
            assert_eq!(want.trap, None, "block {block}: {}", self.text);
            for (g, word) in want.words.iter().enumerate() {
                let t = g as u32 % block;
                assert_eq!(*word, expect(t, block), "thread {t} of {block}: {}", self.text);
            }
        }
    }

    /// The interpreter's result, which is everybody's.
    pub(crate) fn everywhere(&self, block: u32) -> Done {
        let want = self.run(block, Engine::Interp, None, None, &[1]);
        let (full, mut best) = (levels::is_full(), true);
        let hash = levels::hash(&format!("{}{block}", self.text)) as usize / 16;
        let sizes = [Some(1), Some(2), Some(8)];
        let size = sizes[hash % sizes.len()];
        for cpu in [Cpu::Avx512, Cpu::Avx2, Cpu::Baseline] {
            if !levels::is_available(cpu) {
                continue;
            }
            // Warps per coarse warp, unless all is tested: the compiler's choice and one other on the best of
            // these processors, and in an eighth of the cases that other on the rest of them.
            let teams = match (full, std::mem::take(&mut best)) {
                (true, _) => [&[None], sizes.as_slice()].concat(),
                (false, true) => vec![None, size],
                (false, false) if (hash / 4).is_multiple_of(8) => vec![size],
                (false, false) => Vec::new(),
            };
            for team in teams {
                let target = levels::target(cpu, &format!("{}{block}{team:?}", self.text));
                let found = self.run(block, Engine::Jit, Some(target), team, &[1, 2]);
                if want.trap.is_some() {
                    // How far others got is the schedule's.
                    assert_eq!(
                        found.trap, want.trap,
                        "block {block}, {target}, team {team:?}: {}",
                        self.text
                    );
                } else {
                    assert_eq!(found, want, "block {block}, {target}, team {team:?}: {}", self.text);
                }
            }
        }
        want
    }

    /// The trap, which is the same everywhere.
    pub(crate) fn trap(mut self, block: u32) -> String {
        // Of several CTAs any may be the first.
        self.ctas = 1;
        self.everywhere(block).trap.expect("a trap")
    }
}

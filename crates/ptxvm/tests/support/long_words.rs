//! Runs a kernel that stores one word of 64 bits for each thread, in both engines, in native code of the
//! levels of this machine, and under memcheck, and compares with values that the test computes.
//!
//! Invariant: a sanitizer does not change a program, so that run is a reference for the others.

use crate::levels;

use ptxvm::{Engine, ErrorKind, Launch, Options, SanitizeOptions, Tool, Vm};

/// Threads of the only CTA.
pub(crate) const THREADS: u32 = 96;
/// What each word is before the launch.
pub(crate) const BEFORE: u64 = 7;

/// A kernel `k` whose first parameter is the address of the words.
pub(crate) struct Case {
    pub(crate) text: String,
    /// The bytes of its other parameters.
    pub(crate) params: Vec<u8>,
}

impl Case {
    /// The words, and whether native code executed all warp instructions, or the trap.
    fn run(&self, engine: Engine, options: Options) -> Result<(Vec<u64>, bool), String> {
        let vm = Vm::with(Options { cache: levels::cache(), ..options }).expect("options that fit");
        let module = vm.load("words.ptx", &self.text).unwrap_or_else(|error| panic!("{error}"));
        let kernel = module.kernel("k").expect("the kernel");
        let words = vm.buffer(&vec![BEFORE; THREADS as usize]).expect("memory");
        let mut launch = Launch::new([1, 1, 1], [THREADS, 1, 1]).threads(1).engine(engine);
        launch.params = [&words.address().to_le_bytes()[..], &self.params[..]].concat();
        match vm.launch(&kernel, &launch) {
            Ok(report) => {
                let native = report.ran.native_instructions == report.warp_instructions;
                Ok((words.read().expect("the results"), native))
            }
            Err(error) => match error.kind() {
                ErrorKind::Trap(trap, _) => Err(format!("{} {:?}", trap.kind.word(), trap.tid)),
                _ => panic!("{error}"),
            },
        }
    }

    /// What native code of each level does.
    fn native(&self) -> impl Iterator<Item = (String, Result<(Vec<u64>, bool), String>)> {
        levels::of(&self.text).into_iter().map(|target| {
            let options = Options { target: Some(target), ..Options::default() };
            (format!("{target}\n{}", self.text), self.run(Engine::Jit, options))
        })
    }

    /// Every run gives these words. `native`: whether native code executes all of the kernel.
    pub(crate) fn expect(&self, native: bool, expected: impl Fn(u32) -> u64) {
        let expected: Vec<u64> = (0..THREADS).map(expected).collect();
        let (found, _) = self.run(Engine::Interp, Options::default()).expect("no trap");
        assert_eq!(found, expected, "{}", self.text);
        let sanitize = Some(SanitizeOptions::new([Tool::Memcheck]));
        let (found, _) = self.run(Engine::Auto, Options { sanitize, ..Options::default() }).expect("no trap");
        assert_eq!(found, expected, "{}", self.text);
        for (what, done) in self.native() {
            let (found, all) = done.expect("no trap");
            assert_eq!(found, expected, "{what}");
            assert!(all || !native, "{what}");
        }
    }

    /// Both engines take this trap: its word, and the thread.
    pub(crate) fn traps(&self, expected: &str) {
        let found = self.run(Engine::Interp, Options::default()).expect_err("a trap");
        assert_eq!(found, expected, "{}", self.text);
        for (what, done) in self.native() {
            assert_eq!(done.expect_err("a trap"), expected, "{what}");
        }
    }
}

//! `ptxvm run`: stopping a launch from outside, and its report.
#![cfg(target_os = "linux")]

use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// The longest time from a signal to the end of the program. The launches of these tests would take years.
/// Chosen: the promise is a second, and a machine that runs tests may have a high load.
const SOON: Duration = Duration::from_secs(20);
/// The most processor time in seconds for a launch with a time limit of 0.2 s. Unlike wall-clock time, it
/// does not depend on the load. Chosen: the end of a compilation takes up to two seconds, and the launch
/// would take hours.
const LIMITED: f64 = 10.0;

/// A file that goes with the test.
struct Text(PathBuf);

impl Text {
    fn new(name: &str, text: &str) -> Self {
        let path = std::env::temp_dir().join(format!("ptxvm-stop-{name}-{}.ptx", std::process::id()));
        std::fs::write(&path, text).expect("written");
        Self(path)
    }

    fn start(&self, options: &[&str]) -> Child {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ptxvm"));
        command.arg("run").arg(&self.0).arg("--no-cache").args(options);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts")
    }

    fn run(&self, options: &[&str]) -> Output {
        self.start(options).wait_with_output().expect("it ends")
    }

    /// The output, and the processor time in seconds, which the shell prints after its own in minutes and
    /// seconds: `0m0.120s 0m0.010s`.
    fn run_and_measure(&self, options: &[&str]) -> (Output, f64) {
        let mut shell = Command::new("sh");
        shell.args([
            "-c",
            "\"$@\"; status=$?; times >&2; exit $status",
            "sh",
            env!("CARGO_BIN_EXE_ptxvm"),
            "run",
        ]);
        let output = shell.arg(&self.0).arg("--no-cache").args(options).output().expect("the shell starts");
        let said = errors(&output);
        let seconds = |word: &str| {
            let (minutes, seconds) = word.strip_suffix('s')?.split_once('m')?;
            Some(60.0 * minutes.parse::<f64>().ok()? + seconds.parse::<f64>().ok()?)
        };
        let times = said.lines().last().expect("the shell prints times");
        let times: Vec<f64> = times.split(' ').map(|word| seconds(word).expect("a time")).collect();
        (output, times.iter().sum())
    }
}

impl Drop for Text {
    fn drop(&mut self) {
        let _leftovers_are_harmless = std::fs::remove_file(&self.0);
    }
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

const HEAD: &str = ".version 7.0\n.target sm_70\n.address_size 64\n";

#[test]
fn signals_stop_a_launch_and_the_program_says_how_far_it_came() {
    let short = Text::new("short", &format!("{HEAD}.visible .entry k() {{ ret; }}"));
    let endless = Text::new("endless", &format!("{HEAD}.visible .entry k() {{ L: bra L; }}"));
    for (signal, status) in [("INT", 130), ("TERM", 143)] {
        for engine in ["interp", "jit", "auto"] {
            for (text, grid) in [(&short, "2147483647,65535,65535"), (&endless, "2147483647")] {
                let child = text.start(&["--grid", grid, "--block", "32", "--engine", engine]);
                // Long enough that it runs; a signal that comes before would just end the program.
                std::thread::sleep(Duration::from_millis(700));
                let start = Instant::now();
                let kill = Command::new("kill").args([format!("-{signal}"), child.id().to_string()]).status();
                assert!(kill.expect("kill").success());
                let output = child.wait_with_output().expect("it ends");
                assert!(start.elapsed() < SOON, "{signal} {engine}: {:?}", start.elapsed());
                assert_eq!(output.status.code(), Some(status), "{signal} {engine}: {}", errors(&output));
                let said = errors(&output);
                assert!(said.contains("trap: the launch was cancelled"), "{said}");
                let all: u64 = grid.split(',').map(|n| n.parse::<u64>().expect("a number")).product();
                assert!(
                    said.contains("ptxvm: interrupted after ") && said.contains(&format!(" of {all} CTAs")),
                    "{said}"
                );
            }
        }
    }
}

#[test]
fn a_time_limit_bounds_compiling_and_the_end_of_the_program() {
    let mut body = String::from("mov.u32 %r3, %tid.x; mov.u32 %r4, 0;\n");
    for i in 0..40_000 {
        body += &format!(
            "mad.lo.u32 %r{}, %r{}, %r{}, {i}; shf.l.wrap.b32 %r4, %r5, %r3, %r4;\n",
            3 + i % 3,
            3 + i % 2,
            4 + i % 2
        );
    }
    let text = format!(
        "{HEAD}.visible .entry k(.param .u64 out) {{ .reg .b32 %r<9>; .reg .b64 %rd<3>; {body} ld.param.u64 %rd1, [out]; st.global.u32 [%rd1], %r3; ret; }}"
    );
    let text = Text::new("slow", &text);
    // The launch does not include the time in which the text is read.
    let (output, reading) = text.run_and_measure(&["--arg", "zeros:4", "--engine", "interp"]);
    assert_eq!(output.status.code(), Some(0), "{}", errors(&output));
    for engine in ["jit", "auto"] {
        let grid = ["--grid", "1000000", "--block", "32", "--arg", "zeros:4"];
        let (output, took) =
            text.run_and_measure(&[&grid[..], &["--engine", engine, "--timeout", "0.2"]].concat());
        assert_eq!(output.status.code(), Some(3), "{}", errors(&output));
        assert!(errors(&output).contains("trap: time limit reached"), "{}", errors(&output));
        assert!(took < reading + LIMITED, "{engine}: {took} s, and {reading} s to read the text");
    }
}

#[test]
fn what_is_printed_has_a_bound_and_the_rest_is_counted() {
    let text = format!(
        "{HEAD}.extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n.global .align 1 .b8 word[4] = {{120, 121, 10, 0}};\n\
         .visible .entry k() {{ .reg .b64 %rd<3>; mov.u64 %rd1, word; cvta.global.u64 %rd1, %rd1; mov.u64 %rd2, 0;\n\
         {{ .param .b64 f; .param .b64 a; .param .b32 r; st.param.b64 [f], %rd1; st.param.b64 [a], %rd2; call.uni (r), vprintf, (f, a); }} ret; }}"
    );
    let text = Text::new("prints", &text);
    let options = ["--grid", "10", "--block", "32", "--repeat", "3"];
    let all = text.run(&options);
    assert_eq!((all.stdout.len(), errors(&all).as_str()), (3 * 10 * 32 * 3, ""));
    let some = text.run(&[&options[..], &["--max-output", "1500"]].concat());
    assert_eq!(some.status.code(), Some(0));
    assert!(some.stdout.len() <= 1500 && some.stdout.starts_with(b"xy\nxy\n"), "{}", some.stdout.len());
    let lost = 2880 - some.stdout.len();
    let notice = format!(
        "ptxvm: {lost} bytes that the kernel printed are lost: more than `--max-output 1500`, or in one call than 4 MiB\n"
    );
    assert_eq!(errors(&some), notice);
    let json = text.run(&[&options[..], &["--max-output", "1500", "--format", "json"]].concat());
    let json = String::from_utf8(json.stdout).expect("text");
    assert!(json.contains("\"output_dropped\":") && !json.contains("\"output_dropped\":0"), "{json}");
}

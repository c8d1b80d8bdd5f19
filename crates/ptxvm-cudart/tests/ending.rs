//! Calls from destructors of static objects, from `atexit`, from ending threads, after `fork` and after
//! `dlclose`.
//!
//! The program is C. Without a C compiler the test prints that and passes.

mod support;

/// Runs the program in a mode. Returns its lines: a name and a number each, or a word.
fn run(mode: &str) -> Option<Vec<(String, Option<i32>)>> {
    let folder = support::program("ending")?;
    let output = folder.command().arg(mode).output().expect("it starts");
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{mode}: {}\n{out}{err}", output.status);
    // Standard error stays empty, because a program's end is not an error.
    assert_eq!(err, "", "{mode}");
    let line = |line: &str| match line.split_once(' ') {
        Some((name, status)) => (name.to_owned(), Some(status.parse().expect("a status"))),
        None => (line.to_owned(), None),
    };
    Some(out.lines().map(line).collect())
}

/// Checks that all calls succeed until the end.
fn all_succeeds(mode: &str) {
    let Some(lines) = run(mode) else { return };
    assert!(lines.iter().any(|(name, _)| name == "used"), "{mode}: {lines:?}");
    for (name, status) in &lines {
        assert!(status.is_none_or(|status| status == 0), "{mode}: {name} is {status:?}");
    }
}

#[test]
fn destructors_of_static_objects_call() {
    all_succeeds("destructor");
}

#[test]
fn functions_of_atexit_call() {
    all_succeeds("atexit");
}

#[test]
fn threads_that_are_ending_call() {
    all_succeeds("thread");
    all_succeeds("key");
}

#[test]
fn a_process_that_forks_first_may_work_on_both_sides() {
    all_succeeds("first");
}

#[test]
fn libraries_stay_after_dlclose() {
    all_succeeds("dlclose");
}

#[test]
fn a_child_gets_errors_and_the_parent_goes_on() {
    let Some(lines) = run("fork") else { return };
    let at = |word: &str| lines.iter().position(|(name, status)| name == word && status.is_none());
    let (Some(child), Some(parent)) = (at("child"), at("parent")) else { panic!("{lines:?}") };
    for (name, status) in &lines[child..parent] {
        // The others return `cudaErrorInitializationError`; functions that need no driver succeed.
        let works = name.starts_with("__cuda");
        let right = if works { 0 } else { 3 };
        assert!(status.is_none_or(|status| status == right), "{name} is {status:?} in the child");
    }
    for (name, status) in lines[..child].iter().chain(&lines[parent..]) {
        assert!(status.is_none_or(|status| status == 0), "{name} is {status:?} in the parent");
    }
}

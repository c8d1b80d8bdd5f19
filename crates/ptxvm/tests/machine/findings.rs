//! Texts that once made a run panic or hang (`findings/NAME.ptx`, most found by the fuzz target `execute`):
//! they must not any more.

use crate::run_all;

use std::path::Path;

#[test]
fn what_once_failed_runs() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/findings");
    let mut paths: Vec<_> =
        std::fs::read_dir(folder).expect("the folder exists").map(|e| e.expect("an entry").path()).collect();
    paths.sort();
    for path in paths {
        println!("{}", path.display());
        run_all::runs(&String::from_utf8_lossy(&std::fs::read(&path).expect("a file")));
    }
}

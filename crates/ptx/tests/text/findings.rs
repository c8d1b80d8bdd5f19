//! Texts that violated a property earlier (`findings/NAME.ptx`, most found by the fuzz targets): none does
//! now.

use crate::properties;

use std::path::Path;

#[test]
fn what_once_failed_holds() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/findings");
    let mut paths: Vec<_> =
        std::fs::read_dir(folder).expect("the folder exists").map(|e| e.expect("an entry").path()).collect();
    paths.sort();
    for path in paths {
        // As the fuzz targets read their input.
        let bytes = std::fs::read(&path).expect("a file");
        let text = String::from_utf8_lossy(&bytes);
        println!("{}", path.display());
        properties::lexes(&text);
        properties::parses(&text);
        properties::checks(&text);
        properties::prints(&text);
        properties::lowers(&text);
    }
}

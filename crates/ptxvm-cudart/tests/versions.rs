//! Structures and parameters that differ between CUDA 11, 12 and 13 under one name: the name under which a
//! program opens the runtime decides.

mod support;

#[test]
fn each_version_has_its_structures() {
    for (major, library) in [(11, "libcudart.so.11.0"), (12, "libcudart.so.12"), (13, "libcudart.so.13")] {
        let Some(folder) = support::program_with("versions", library) else { return };
        // The driver's version does not matter.
        for driver in ["12.9", "13.0"] {
            let mut command = folder.command();
            command.args([library, &major.to_string()]).env("PTXVM_DRIVER_VERSION", driver);
            let output = command.output().expect("it starts");
            let said = [output.stdout, output.stderr].concat();
            assert!(
                output.status.success(),
                "{library}: {}\n{}",
                output.status,
                String::from_utf8_lossy(&said)
            );
        }
    }
}

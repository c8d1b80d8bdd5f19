//! `cargo xtask dist --prove`: uses the packages on a machine without Rust and LLVM.
//!
//! The machine is a separate root in a mount namespace: the system's folders and one Python, read-only,
//! without everything that belongs to Rust, clang or LLVM. Of this checkout it contains only the packages and
//! a folder of tests. `prove.sh` runs there.
//!
//! Invariant: the proof fails if LLVM, rustc or cargo can be found there, or if a kernel does not run
//! natively.

use super::{clear, failed, folder, make, packages, run, wheel, write};
use std::path::Path;
use std::process::Command;

/// The script that runs inside.
const SCRIPT: &str = include_str!("prove.sh");

/// Makes the root: `$1` is its folder, `$2` the prefix of Python, which is mounted at the same path.
const SETUP: &str = r#"
set -eu
root=$1 python=$2
for place in usr bin sbin lib lib64 etc opt; do
    if [ -L "/$place" ]; then
        ln -sfn "$(readlink "/$place")" "$root/$place"
    elif [ -d "/$place" ] && [ "$place" != opt ]; then
        mkdir -p "$root/$place"
        mount --rbind "/$place" "$root/$place"
        mount -o remount,bind,ro "$root/$place"
    fi
done
mkdir -p "$root/proc" "$root/dev" "$root/tmp" "$root/root" "$root/opt" "$root$python"
chmod 1777 "$root/tmp"
mount --rbind /proc "$root/proc"
mount --rbind /dev "$root/dev"
mount --bind "$python" "$root$python"
mount -o remount,bind,ro "$root$python"
# What is taken away.
mkdir -p "$root/.empty"
find "$root/usr" "$root$python" \( -name 'libLLVM*' -o -name 'llvm-[0-9]*' -o -name 'rustc*' -o -name 'cargo*' -o -name 'clang*' \
    -o -name 'libclang*' \) -prune ! -path '*/site-packages/*' ! -path '*/share/*' 2>/dev/null | while read -r path; do
    if [ -L "$path" ]; then continue; fi
    if [ -d "$path" ]; then mount --bind "$root/.empty" "$path"; else mount --bind /dev/null "$path"; fi
done
exec chroot "$root" /usr/bin/env -i HOME=/root PATH="$python/bin:/usr/local/bin:/usr/bin:/bin" LANG=C.UTF-8 \
    PIP_DISABLE_PIP_VERSION_CHECK=1 ${PIP_CERT:+PIP_CERT="$PIP_CERT"} ${PIP_INDEX_URL:+PIP_INDEX_URL="$PIP_INDEX_URL"} \
    ${HTTPS_PROXY:+HTTPS_PROXY="$HTTPS_PROXY"} ${https_proxy:+https_proxy="$https_proxy"} \
    ${SSL_CERT_FILE:+SSL_CERT_FILE="$SSL_CERT_FILE"} /bin/bash /packages/prove.sh
"#;

/// Makes a machine, and uses the packages there.
pub(super) fn prove() -> Result<(), String> {
    let root = folder()?.join("prove");
    clear(&root)?;
    let inside = root.join("packages");
    make(&inside)?;
    for package in [packages::tarball_file()?, packages::deb_file()?, wheel::wheel_file()?] {
        let name = package.file_name().unwrap_or_default();
        std::fs::hard_link(&package, inside.join(name)).map_err(|error| {
            format!("{}; `cargo xtask dist` makes the packages", failed(&package, &error))
        })?;
    }
    let tests = crate::root().join("tests/packages");
    run(Command::new("cp").arg("-r").arg(&tests).arg(inside.join("tests")))?;
    write(&inside.join("prove.sh"), SCRIPT)?;
    let prefix = super::output(
        Command::new("python3").args(["-c", "import sys; print(sys.base_prefix)"]).current_dir("/"),
    )?;
    let mut namespace = Command::new("unshare");
    namespace.args(["--mount", "--fork"]);
    if !is_root() {
        namespace.arg("--map-root-user");
    }
    let done = run(namespace.args(["/bin/sh", "-c", SETUP, "setup"]).arg(&root).arg(prefix.trim()));
    done.and_then(|()| remove(&root))
}

/// Whether this process may mount.
fn is_root() -> bool {
    super::output(Command::new("id").arg("-u")).is_ok_and(|id| id.trim() == "0")
}

/// Removes the root; its mounts ended with the namespace.
fn remove(root: &Path) -> Result<(), String> {
    clear(root)
}

//! The tarball, the Debian package and the context of a container image.
//!
//! Invariant: the same tree gives the same bytes: names are sorted, the owner is root, times are that of the
//! commit.

use super::{VERSION, clear, failed, folder, make, output, read, run, stage, write};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The name of the tarball without its ending, and of the folder in it.
pub(super) fn name() -> String {
    format!("ptxvm-{VERSION}-{}-linux", std::env::consts::ARCH)
}

/// The path of the tarball.
pub(super) fn tarball_file() -> Result<PathBuf, String> {
    Ok(folder()?.join(format!("{}.tar.gz", name())))
}

/// The path of the Debian package.
pub(super) fn deb_file() -> Result<PathBuf, String> {
    Ok(folder()?.join(format!("ptxvm_{VERSION}_{}.deb", architecture())))
}

/// The time of the commit in Unix seconds, for reproducible packages; `SOURCE_DATE_EPOCH` overrides it.
fn time() -> String {
    if let Ok(time) = std::env::var("SOURCE_DATE_EPOCH") {
        return time;
    }
    let commit = output(Command::new("git").args(["log", "-1", "--format=%ct"]).current_dir(crate::root()));
    commit.map(|time| time.trim().to_owned()).unwrap_or_else(|_| "0".to_owned())
}

/// `ptxvm-VERSION-ARCH-linux.tar.gz`, with everything below a folder of that name.
pub(super) fn tarball(tree: &Path) -> Result<(), String> {
    let file = tarball_file()?;
    run(Command::new("tar")
        .args([
            "--create",
            "--gzip",
            "--sort=name",
            "--owner=0",
            "--group=0",
            "--numeric-owner",
            "--mode=go-w",
        ])
        .arg(format!("--mtime=@{}", time()))
        .arg(format!("--transform=s,^\\.,{},", name()))
        .arg("--file")
        .arg(&file)
        .arg("--directory")
        .arg(tree)
        .arg("."))
}

/// Debian's name for this architecture.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// `ptxvm_VERSION_ARCH.deb`: the tree below `/usr`.
pub(super) fn deb(tree: &Path) -> Result<(), String> {
    let root = folder()?.join("deb");
    clear(&root)?;
    let usr = root.join("usr");
    make(&usr)?;
    for part in ["bin", "lib", "share"] {
        run(Command::new("cp").arg("-a").arg(tree.join(part)).arg(&usr))?;
    }
    let papers = usr.join("share/doc/ptxvm");
    let mit = String::from_utf8_lossy(&read(&tree.join("share/doc/ptxvm/LICENSE-MIT"))?).into_owned();
    write(&papers.join("copyright"), copyright(&mit))?;
    // Debian's zsh looks for completions of packages in a folder of its own.
    let zsh = usr.join("share/zsh");
    let (from, to) = (zsh.join("site-functions"), zsh.join("vendor-completions"));
    std::fs::rename(&from, to).map_err(|error| failed(&from, &error))?;
    // Debian's manual pages are compressed.
    let pages = usr.join("share/man/man1");
    for page in super::read_dir(&pages).unwrap_or_default() {
        run(Command::new("gzip").args(["-9", "-n"]).arg(page))?;
    }
    let (major, minor) = stage::floor(&usr)?;
    let installed = size(&root)? / 1024;
    write(
        &root.join("DEBIAN/control"),
        format!(
            "Package: ptxvm\n\
             Version: {VERSION}\n\
             Architecture: {}\n\
             Maintainer: the ptxvm developers <ptxvm@users.noreply.github.com>\n\
             Installed-Size: {installed}\n\
             Depends: libc6 (>= {major}.{minor}), libgcc-s1, zlib1g\n\
             Suggests: clang (>= 1:16)\n\
             Section: devel\n\
             Priority: optional\n\
             Description: PTX virtual machine: CUDA programs without a GPU\n \
             Reads NVIDIA PTX, checks it, and executes it on any CPU. `ptxvm exec` runs\n \
             programs that use the CUDA driver or runtime API; no GPU, no driver and no\n \
             NVIDIA software is needed. LLVM is included.\n",
            architecture()
        ),
    )?;
    let file = deb_file()?;
    run(Command::new("dpkg-deb")
        .args(["--root-owner-group", "-Zxz", "-z3", "--build"])
        .arg(&root)
        .arg(&file)
        .env("SOURCE_DATE_EPOCH", time())
        .stdout(std::process::Stdio::null()))?;
    clear(&root)
}

/// Debian's file of licences, in its machine-readable form.
fn copyright(mit: &str) -> String {
    let indented: Vec<String> = mit
        .lines()
        .map(|line| if line.trim().is_empty() { " .".to_owned() } else { format!(" {line}") })
        .collect();
    format!(
        "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n\
         Upstream-Name: ptxvm\n\
         Comment: Software of others in this package: THIRD-PARTY.md in this folder.\n\
         \n\
         Files: *\n\
         Copyright: the ptxvm developers\n\
         License: Expat or Apache-2.0\n\
         \n\
         License: Expat\n\
         {}\n\
         \n\
         License: Apache-2.0\n \
         On Debian systems the text is in /usr/share/common-licenses/Apache-2.0.\n",
        indented.join("\n")
    )
}

/// Bytes of all files below a folder.
fn size(folder: &Path) -> Result<u64, String> {
    let mut sum = 0;
    for path in super::read_dir(folder)? {
        let about = path.symlink_metadata().map_err(|error| failed(&path, &error))?;
        sum += if about.is_dir() { size(&path)? } else { about.len() };
    }
    Ok(sum)
}

/// `container/`: the tarball and a `Dockerfile` that unpacks it.
pub(super) fn container() -> Result<(), String> {
    let context = folder()?.join("container");
    clear(&context)?;
    make(&context)?;
    let name = format!("{}.tar.gz", name());
    std::fs::hard_link(tarball_file()?, context.join(&name)).map_err(|error| failed(&context, &error))?;
    write(
        &context.join("Dockerfile"),
        format!(
            "# ptxvm on Debian. `docker run --rm -v \"$PWD:/work\" ptxvm check kernel.ptx`\n\
             FROM debian:bookworm-slim\n\
             RUN apt-get update \\\n \
             && apt-get install --yes --no-install-recommends libgcc-s1 zlib1g \\\n \
             && rm -rf /var/lib/apt/lists/*\n\
             ADD {name} /opt/\n\
             RUN ln -s /opt/{0} /opt/ptxvm && ln -s /opt/ptxvm/bin/ptxvm /usr/local/bin/ptxvm\n\
             WORKDIR /work\n\
             ENTRYPOINT [\"ptxvm\"]\n\
             CMD [\"--help\"]\n",
            self::name()
        ),
    )
}

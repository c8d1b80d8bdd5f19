//! A folder for one compilation, with the texts that the compiler reads and the files that it writes.
//!
//! Invariants: the folder is private to this user, its name cannot be guessed, and it is removed when its
//! value is dropped. A name that a program gives a header never leads out of it.

use std::fs::DirBuilder;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Component, Path, PathBuf};

/// The depth of the folder of headers, so that up to as many `..` in a header's name stay inside.
const DEPTH: usize = 8;

/// The headers that programs find without naming them, by their paths.
const DEVICE: &[(&str, &str)] = &[
    ("addresses.h", include_str!("../device/addresses.h")),
    ("arithmetic.h", include_str!("../device/arithmetic.h")),
    ("coefficients.h", include_str!("../device/coefficients.h")),
    ("double.h", include_str!("../device/double.h")),
    ("overloads.h", include_str!("../device/overloads.h")),
    ("rtc.h", include_str!("../device/rtc.h")),
    ("single.h", include_str!("../device/single.h")),
    ("special.h", include_str!("../device/special.h")),
    ("std.h", include_str!("../device/std.h")),
    ("types.h", include_str!("../device/types.h")),
    ("system/crt/sm_70_rt.hpp", include_str!("../device/system/crt/sm_70_rt.hpp")),
];

/// The folder.
pub(crate) struct Folder(PathBuf);

impl Folder {
    /// Creates a folder with our headers in it.
    pub(crate) fn new() -> io::Result<Self> {
        let name = format!("ptxvm-nvrtc-{:016x}", RandomState::new().build_hasher().finish());
        let path = std::env::temp_dir().join(name);
        // This fails if the name exists, also as a link.
        DirBuilder::new().mode(0o700).create(&path)?;
        let folder = Self(path);
        for (name, text) in DEVICE {
            folder.write(&folder.device().join(name), text.as_bytes())?;
        }
        std::fs::create_dir_all(folder.headers())?;
        Ok(folder)
    }

    /// The folder of our headers.
    pub(crate) fn device(&self) -> PathBuf {
        self.0.join("device")
    }

    /// The folder of the program's headers.
    pub(crate) fn headers(&self) -> PathBuf {
        let mut path = self.0.join("headers");
        path.extend(std::iter::repeat_n("of", DEPTH));
        path
    }

    /// A file in it.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Writes a new file, and creates the folders on its path.
    pub(crate) fn write(&self, path: &Path, text: &[u8]) -> io::Result<()> {
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        std::fs::write(path, text)
    }

    /// Writes a header of the program; false if no `#include` could mean its name.
    pub(crate) fn header(&self, name: &Path, text: &[u8]) -> io::Result<bool> {
        match inside(name) {
            Some(place) => self.write(&self.headers().join(place), text).map(|()| true),
            None => Ok(false),
        }
    }

    /// The compiler's text without the paths of the folder.
    pub(crate) fn without_places(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for place in [self.headers(), self.device(), self.0.clone()] {
            text = text.replace(&format!("{}/", place.display()), "");
        }
        text
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _leftovers_are_harmless = std::fs::remove_dir_all(&self.0);
    }
}

/// The path of a header relative to the folder of headers; `None` if it would be outside.
fn inside(name: &Path) -> Option<PathBuf> {
    let (mut place, mut up, mut down) = (PathBuf::new(), 0, 0);
    for part in name.components() {
        match part {
            Component::Normal(part) => {
                place.push(part);
                down += 1;
            }
            Component::ParentDir if down > 0 => {
                place.pop();
                down -= 1;
            }
            Component::ParentDir => {
                place.push("..");
                up += 1;
            }
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    (down > 0 && up < DEPTH).then_some(place)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn headers_never_leave_the_folder() {
        for name in
            ["/etc/passwd", "..", "a/..", "", "../../../../../../../../x", "a/../../../../../../../../../x"]
        {
            assert_eq!(inside(Path::new(name)), None, "{name}");
        }
        for (name, place) in [("a.h", "a.h"), ("a/./b/../c", "a/c"), ("../a.h", "../a.h")] {
            assert_eq!(inside(Path::new(name)), Some(place.into()), "{name}");
        }
    }

    #[test]
    fn it_is_private_and_goes_with_its_value() {
        let folder = Folder::new().unwrap();
        let path = folder.0.clone();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o700);
        assert!(folder.header(Path::new("../a/b.h"), b"x").unwrap());
        assert!(folder.device().join("rtc.h").exists() && folder.headers().join("../a/b.h").exists());
        let said = format!("{}/p.h:1: error", folder.headers().display());
        assert_eq!(folder.without_places(&said), "p.h:1: error");
        drop(folder);
        assert!(!path.exists());
    }
}

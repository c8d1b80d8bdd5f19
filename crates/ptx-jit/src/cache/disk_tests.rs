//! The cache folder: what it returns, and how it treats files that it did not write.

use super::*;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::sync::atomic::AtomicU32;

/// A folder for one test, which removes it at its end.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Scratch {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("ptxvm-disk-{}-{number}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        Scratch(path)
    }

    /// The path of a key's file.
    fn path(&self, key: Key) -> PathBuf {
        self.0.join(name(key))
    }

    fn disk(&self) -> Disk {
        Disk::new(self.0.clone(), 1 << 20)
    }

    fn files(&self) -> Vec<PathBuf> {
        let mut files: Vec<_> =
            fs::read_dir(&self.0).into_iter().flatten().flatten().map(|e| e.path()).collect();
        files.sort();
        files
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn key(number: u8) -> Key {
    Key([number; 32])
}

#[test]
fn what_was_written_is_read_by_others() {
    let folder = Scratch::new();
    let disk = folder.disk();
    assert_eq!(disk.read(key(1)), None);
    disk.write(key(1), b"one");
    disk.write(key(2), b"");
    let other = folder.disk();
    assert_eq!(other.read(key(1)).as_deref(), Some(&b"one"[..]));
    assert_eq!(other.read(key(2)).as_deref(), Some(&b""[..]));
    assert_eq!(other.read(key(3)), None);
    other.write(key(1), b"uno");
    assert_eq!(disk.read(key(1)).as_deref(), Some(&b"uno"[..]));
    assert_eq!(folder.files().len(), 2, "nothing unfinished is left");
}

#[test]
fn damaged_files_are_not_used_and_go() {
    let folder = Scratch::new();
    let disk = folder.disk();
    disk.write(key(1), b"the content of a file");
    let path = folder.path(key(1));
    let whole = fs::read(&path).unwrap();
    for len in 0..whole.len() {
        fs::write(&path, &whole[..len]).unwrap();
        assert_eq!(disk.read(key(1)), None, "cut to {len} bytes");
        assert!(!path.exists(), "cut to {len} bytes");
    }
    for at in 0..whole.len() {
        let mut wrong = whole.clone();
        wrong[at] ^= 0x10;
        fs::write(&path, &wrong).unwrap();
        assert_eq!(disk.read(key(1)), None, "byte {at} changed");
    }
    fs::write(&path, [&whole[..], b"more"].concat()).unwrap();
    assert_eq!(disk.read(key(1)), None, "more at the end");
    // The file of another key under this key's name.
    disk.write(key(2), b"two");
    fs::rename(folder.path(key(2)), &path).unwrap();
    assert_eq!(disk.read(key(1)), None);
    // A folder under a file's name.
    fs::create_dir(&path).unwrap();
    assert_eq!(disk.read(key(1)), None);
    disk.write(key(1), b"again");
    assert_eq!(disk.read(key(1)), None);
    fs::remove_dir(&path).unwrap();
    disk.write(key(1), b"again");
    assert_eq!(disk.read(key(1)).as_deref(), Some(&b"again"[..]));
}

#[test]
fn the_oldest_go_when_it_is_full() {
    let folder = Scratch::new();
    let content = [7; 1000];
    let disk = Disk::new(folder.0.clone(), 20 * 1100);
    for number in 0..100 {
        disk.write(key(number), &content);
        // File times are coarse, so they are set to different values.
        if let Ok(file) = File::options().write(true).open(folder.path(key(number))) {
            let time = SystemTime::now() - Duration::from_secs(1000 - u64::from(number));
            file.set_modified(time).unwrap();
        }
        let bytes: u64 = folder.files().iter().map(|file| fs::metadata(file).unwrap().len()).sum();
        assert!(bytes <= 20 * 1100, "{bytes} bytes after {number}");
    }
    assert_eq!(disk.read(key(99)).as_deref(), Some(&content[..]));
    assert_eq!(disk.read(key(95)).as_deref(), Some(&content[..]));
    assert_eq!(disk.read(key(0)), None);
    assert!(folder.files().len() >= 14, "no more goes than must");
    // A file that alone exceeds the bound is not kept.
    disk.write(key(200), &[0; 30_000]);
    assert_eq!(disk.read(key(200)), None);
    assert!(folder.files().len() >= 14);
}

#[test]
fn a_file_that_is_used_is_not_the_oldest() {
    let folder = Scratch::new();
    let disk = Disk::new(folder.0.clone(), 10_000);
    for number in 0..5 {
        disk.write(key(number), &[1; 1000]);
        let file = File::options().write(true).open(folder.path(key(number))).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(9000 - u64::from(number))).unwrap();
    }
    assert!(disk.read(key(0)).is_some());
    for number in 5..12 {
        disk.write(key(number), &[1; 1000]);
    }
    assert!(disk.read(key(0)).is_some());
    assert!(disk.read(key(1)).is_none());
}

#[test]
fn what_was_never_finished_goes_after_a_while() {
    let folder = Scratch::new();
    fs::create_dir_all(&folder.0).unwrap();
    let (old, new) = (folder.0.join("a.1.2.part"), folder.0.join("b.1.2.part"));
    fs::write(&old, b"half").unwrap();
    fs::write(&new, b"half").unwrap();
    let file = File::options().write(true).open(&old).unwrap();
    file.set_modified(SystemTime::now() - 2 * STALE).unwrap();
    folder.disk().write(key(1), b"one");
    assert!(!old.exists());
    assert!(new.exists(), "another process may be writing it");
}

#[test]
fn a_folder_that_cannot_be_used_is_as_good_as_none() {
    let folder = Scratch::new();
    fs::create_dir_all(&folder.0).unwrap();
    let file = folder.0.join("file");
    fs::write(&file, b"no folder").unwrap();
    for path in [file.clone(), file.join("below"), PathBuf::from("/proc/nothing/here")] {
        let disk = Disk::new(path, 1 << 20);
        disk.write(key(1), b"one");
        assert_eq!(disk.read(key(1)), None);
        assert!(disk.refusal().is_some_and(|why| why.contains(": ")), "{:?}", disk.refusal());
    }
    assert_eq!(fs::read(&file).unwrap(), b"no folder");
}

#[test]
fn files_that_others_can_write_are_not_used() {
    let folder = Scratch::new();
    let disk = folder.disk();
    disk.write(key(1), b"one");
    let path = folder.path(key(1));
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::metadata(&folder.0).unwrap().permissions().mode() & 0o777, 0o700);
    for mode in [0o666, 0o620, 0o602] {
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        assert_eq!(disk.read(key(1)), None, "{mode:o}");
    }
    disk.write(key(1), b"mine");
    assert_eq!(disk.read(key(1)).as_deref(), Some(&b"mine"[..]));
    give_away(&path, |is_given| assert_eq!(disk.read(key(1)).is_none(), is_given));
}

/// Gives a file to another user, which only root can do, and passes on whether that succeeded.
fn give_away(path: &Path, check: impl Fn(bool)) {
    check(std::os::unix::fs::lchown(path, Some(another_user()), None).is_ok());
}

fn another_user() -> u32 {
    rustix::process::geteuid().as_raw() + 1
}

#[test]
fn a_folder_that_others_can_write_is_not_used() {
    for mode in [0o777, 0o1777, 0o770, 0o720, 0o702] {
        let folder = Scratch::new();
        let disk = folder.disk();
        disk.write(key(1), b"one");
        assert_eq!(disk.refusal(), None);
        fs::set_permissions(&folder.0, fs::Permissions::from_mode(mode)).unwrap();
        assert_eq!(disk.read(key(1)), None, "{mode:o}");
        let expected = format!("{}: other users can write to it (mode {mode:o})", folder.0.display());
        assert_eq!(disk.refusal(), Some(expected));
        disk.write(key(2), b"two");
        assert_eq!(folder.files(), [folder.path(key(1))], "{mode:o}");
        fs::set_permissions(&folder.0, fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(disk.read(key(1)).as_deref(), Some(&b"one"[..]), "others may read it");
    }
    let folder = Scratch::new();
    let disk = folder.disk();
    disk.write(key(1), b"one");
    give_away(&folder.0, |is_given| {
        assert_eq!(disk.read(key(1)).is_none(), is_given);
        disk.write(key(2), b"two");
        assert_eq!(folder.path(key(2)).exists(), !is_given);
    });
}

#[test]
fn a_link_to_the_folder_is_followed_if_it_is_this_users() {
    let folder = Scratch::new();
    let (real, link) = (folder.0.join("real"), folder.0.join("link"));
    fs::create_dir_all(&real).unwrap();
    symlink(&real, &link).unwrap();
    let disk = Disk::new(link.clone(), 1 << 20);
    disk.write(key(1), b"one");
    assert_eq!(disk.read(key(1)).as_deref(), Some(&b"one"[..]));
    give_away(&link, |is_given| {
        for path in [link.clone(), link.join("")] {
            assert_eq!(Disk::new(path, 1 << 20).read(key(1)).is_none(), is_given);
        }
    });
}

/// Files that another program of this user may leave under a cache file's name: they are not waited for,
/// followed or written to.
#[test]
fn what_is_no_regular_file_is_neither_read_nor_followed() {
    let folder = Scratch::new();
    let disk = folder.disk();
    disk.write(key(1), b"one");
    let precious = folder.0.join("precious");
    fs::copy(folder.path(key(1)), &precious).unwrap();
    let before = fs::read(&precious).unwrap();
    let path = folder.path(key(1));
    let plant: [&dyn Fn(); 4] = [
        &|| mknodat(CWD, &path, FileType::Fifo, Mode::RWXU, 0).unwrap(),
        &|| symlink(&precious, &path).unwrap(),
        &|| symlink("/dev/zero", &path).unwrap(),
        &|| mknodat(CWD, &path, FileType::Socket, Mode::RWXU, 0).unwrap(),
    ];
    for (number, plant) in plant.into_iter().enumerate() {
        fs::remove_file(&path).unwrap();
        plant();
        assert_eq!(disk.read(key(1)), None, "{number}");
        assert!(fs::symlink_metadata(&path).is_ok(), "{number}: it is left alone");
        disk.write(key(1), b"new");
        assert_eq!(disk.read(key(1)).as_deref(), Some(&b"new"[..]), "{number}");
        assert_eq!(fs::read(&precious).unwrap(), before, "{number}");
    }
}

#[test]
fn names_that_could_be_foreseen_are_not_written_to() {
    let folder = Scratch::new();
    let disk = folder.disk();
    disk.write(key(0), b"zero");
    let precious = folder.0.join("precious");
    fs::write(&precious, b"precious").unwrap();
    // The names that an earlier version used.
    for number in 0..9 {
        let part = format!("{}.{}.{number}.part", key(1), std::process::id());
        symlink(&precious, folder.0.join(part)).unwrap();
    }
    disk.write(key(1), b"one");
    assert_eq!(fs::read(&precious).unwrap(), b"precious");
    assert_eq!(disk.read(key(1)).as_deref(), Some(&b"one"[..]));
}

#[test]
fn hard_links_are_files_like_others() {
    let folder = Scratch::new();
    let disk = folder.disk();
    disk.write(key(1), b"one");
    fs::hard_link(folder.path(key(1)), folder.0.join("backup")).unwrap();
    assert_eq!(disk.read(key(1)).as_deref(), Some(&b"one"[..]));
    // The hard link keeps the old content: a file is never written to again.
    let before = fs::read(folder.0.join("backup")).unwrap();
    disk.write(key(1), b"new");
    assert_eq!(fs::read(folder.0.join("backup")).unwrap(), before);
}

#[test]
fn nothing_is_sized_by_what_a_file_claims_to_be() {
    let folder = Scratch::new();
    let disk = folder.disk();
    disk.write(key(1), b"one");
    for bytes in [LARGEST + 1, 1 << 40] {
        // A sparse file.
        File::options().write(true).open(folder.path(key(1))).unwrap().set_len(bytes).unwrap();
        assert_eq!(disk.read(key(1)), None, "{bytes}");
    }
    // The sum of these sizes exceeds 64 bits, on file systems that allow such sizes.
    for number in 10..14 {
        disk.write(key(number), b"hole");
        let file = File::options().write(true).open(folder.path(key(number))).unwrap();
        let _too_large = file.set_len(i64::MAX as u64);
    }
    let disk = folder.disk();
    disk.write(key(1), b"one");
    assert_eq!(disk.read(key(1)).as_deref(), Some(&b"one"[..]));
}

#[test]
fn a_folder_of_many_names_is_looked_at_in_part() {
    let folder = Scratch::new();
    folder.disk().write(key(0), b"zero");
    for number in 0..200 {
        fs::write(folder.0.join(format!("{number}.code")), b"").unwrap();
    }
    // Each knows as much of the size as a new process.
    let small = || Disk { names: 50, size: Arc::default(), ..folder.disk() };
    let count = folder.files().len();
    small().write(key(1), b"one");
    let left = folder.files().len();
    assert!(left < count, "{left} of {count}");
    // Repeated scans reach the end of the names.
    for _ in 0..20 {
        small().write(key(1), b"one");
    }
    assert_eq!(small().read(key(1)).as_deref(), Some(&b"one"[..]));
    // Files of other programs stay; if there are too many of them, no file is written.
    for number in 0..200 {
        fs::write(folder.0.join(format!("{number}.txt")), b"x").unwrap();
    }
    let disk = small();
    disk.write(key(2), b"two");
    disk.write(key(3), b"three");
    assert_eq!((disk.read(key(2)), disk.read(key(3))), (None, None));
    assert_eq!(folder.files().iter().filter(|file| file.to_string_lossy().ends_with(".txt")).count(), 200);
}

#[test]
fn times_to_come_keep_nothing_for_ever() {
    let folder = Scratch::new();
    let disk = Disk::new(folder.0.clone(), 10_000);
    let ahead = |path: &Path, seconds: u64| {
        let file = File::options().write(true).open(path).unwrap();
        file.set_modified(SystemTime::now() + Duration::from_secs(seconds)).unwrap();
    };
    disk.write(key(0), &[1; 1000]);
    let part = folder.0.join("a.part");
    fs::write(&part, b"half").unwrap();
    ahead(&part, 1 << 30);
    ahead(&folder.path(key(0)), 1 << 30);
    for number in 1..12 {
        disk.write(key(number), &[1; 1000]);
    }
    assert_eq!(disk.read(key(0)), None);
    assert!(!part.exists());
    assert!(disk.read(key(11)).is_some());
    // Using the file gives it a valid time.
    ahead(&folder.path(key(11)), 1 << 30);
    assert!(disk.read(key(11)).is_some());
    assert!(fs::metadata(folder.path(key(11))).unwrap().modified().unwrap() <= SystemTime::now());
}

#[test]
fn several_write_the_same_at_once() {
    let folder = Scratch::new();
    std::thread::scope(|scope| {
        for writer in 0..4u8 {
            let path = folder.0.clone();
            scope.spawn(move || {
                let disk = Disk::new(path, 40_000);
                for turn in 0..50u8 {
                    let content = vec![writer; 1000 + usize::from(turn)];
                    disk.write(key(turn % 10), &content);
                    if let Some(found) = disk.read(key(turn % 10)) {
                        assert!(found.len() >= 1000 && found.iter().all(|byte| *byte == found[0]));
                    }
                }
            });
        }
    });
    assert!(folder.files().iter().all(|file| file.to_string_lossy().ends_with(SUFFIX)));
}

#[test]
fn the_disks_of_one_folder_scan_it_together() {
    let folder = Scratch::new();
    folder.disk().write(key(0), b"zero");
    // A scan would remove it.
    let stale = folder.0.join("a.part");
    fs::write(&stale, b"half").unwrap();
    let file = File::options().write(true).open(&stale).unwrap();
    file.set_modified(SystemTime::now() - 2 * STALE).unwrap();
    for number in 1..LOOK {
        folder.disk().write(key(1), b"one");
        assert!(stale.exists(), "write {number}");
    }
    folder.disk().write(key(1), b"one");
    assert!(!stale.exists());
}

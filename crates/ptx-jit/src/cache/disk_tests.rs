//! The folder: what it gives back, and what it does with files that are not as it wrote them.

use super::*;
use std::sync::atomic::AtomicU32;

/// A folder of this test alone, which goes with it.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("ptxvm-disk-{}-{number}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        Folder(path)
    }

    fn files(&self) -> Vec<PathBuf> {
        let mut files: Vec<_> =
            fs::read_dir(&self.0).into_iter().flatten().flatten().map(|e| e.path()).collect();
        files.sort();
        files
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn key(number: u8) -> Key {
    Key([number; 32])
}

#[test]
fn what_was_written_is_read_by_others() {
    let folder = Folder::new();
    let disk = Disk::new(folder.0.clone(), 1 << 20);
    assert_eq!(disk.read(key(1)), None);
    disk.write(key(1), b"one");
    disk.write(key(2), b"");
    let other = Disk::new(folder.0.clone(), 1 << 20);
    assert_eq!(other.read(key(1)).as_deref(), Some(&b"one"[..]));
    assert_eq!(other.read(key(2)).as_deref(), Some(&b""[..]));
    assert_eq!(other.read(key(3)), None);
    other.write(key(1), b"uno");
    assert_eq!(disk.read(key(1)).as_deref(), Some(&b"uno"[..]));
    assert_eq!(folder.files().len(), 2, "nothing unfinished is left");
}

#[test]
fn damaged_files_are_not_used_and_go() {
    let folder = Folder::new();
    let disk = Disk::new(folder.0.clone(), 1 << 20);
    disk.write(key(1), b"the content of a file");
    let path = disk.path(key(1));
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
    // Another key's file under this one's name.
    disk.write(key(2), b"two");
    fs::rename(disk.path(key(2)), &path).unwrap();
    assert_eq!(disk.read(key(1)), None);
    // A folder under the name of a file.
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
    let folder = Folder::new();
    let content = [7; 1000];
    let disk = Disk::new(folder.0.clone(), 20 * 1100);
    for number in 0..100 {
        disk.write(key(number), &content);
        // Times of files are coarse: make them differ.
        if let Ok(file) = File::options().write(true).open(disk.path(key(number))) {
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
    // What alone is larger than the bound is not kept.
    disk.write(key(200), &[0; 30_000]);
    assert_eq!(disk.read(key(200)), None);
    assert!(folder.files().len() >= 14);
}

#[test]
fn a_file_that_is_used_is_not_the_oldest() {
    let folder = Folder::new();
    let disk = Disk::new(folder.0.clone(), 10_000);
    for number in 0..5 {
        disk.write(key(number), &[1; 1000]);
        let file = File::options().write(true).open(disk.path(key(number))).unwrap();
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
    let folder = Folder::new();
    fs::create_dir_all(&folder.0).unwrap();
    let (old, new) = (folder.0.join("a.1.2.part"), folder.0.join("b.1.2.part"));
    fs::write(&old, b"half").unwrap();
    fs::write(&new, b"half").unwrap();
    let file = File::options().write(true).open(&old).unwrap();
    file.set_modified(SystemTime::now() - 2 * STALE).unwrap();
    Disk::new(folder.0.clone(), 1 << 20).write(key(1), b"one");
    assert!(!old.exists());
    assert!(new.exists(), "another process may be writing it");
}

#[test]
fn a_folder_that_cannot_be_used_is_as_good_as_none() {
    let folder = Folder::new();
    fs::create_dir_all(&folder.0).unwrap();
    let file = folder.0.join("file");
    fs::write(&file, b"no folder").unwrap();
    for path in [file.clone(), file.join("below"), PathBuf::from("/proc/nothing/here")] {
        let disk = Disk::new(path, 1 << 20);
        disk.write(key(1), b"one");
        assert_eq!(disk.read(key(1)), None);
    }
    assert_eq!(fs::read(&file).unwrap(), b"no folder");
}

#[cfg(unix)]
#[test]
fn files_that_others_can_write_are_not_used() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new();
    let disk = Disk::new(folder.0.clone(), 1 << 20);
    disk.write(key(1), b"one");
    let path = disk.path(key(1));
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::metadata(&folder.0).unwrap().permissions().mode() & 0o777, 0o700);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
    assert_eq!(disk.read(key(1)), None);
}

#[test]
fn several_write_the_same_at_once() {
    let folder = Folder::new();
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

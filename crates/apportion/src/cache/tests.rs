//! Entries of several processes, sizes, damage.

use std::fs::{self, File};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use tempfile::TempDir;

use super::{Cache, Key, Usage};

type Entry = (u64, Vec<f64>);

fn entries(cache: &Cache, key: &Key) -> Vec<Entry> {
    let mut all = Vec::new();
    cache.read(key, |entry| all.push(entry));
    all.sort_by_key(|entry: &Entry| entry.0);
    all
}

fn files(folder: &TempDir) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.path().join("2")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { folders.push(path) } else { found.push(path) }
        }
    }
    found.sort();
    found
}

#[test]
fn what_processes_appended_is_there() {
    let folder = TempDir::new().unwrap();
    let (one, other) = (Cache::at(folder.path()), Cache::at(folder.path()));
    let keys = [Key::of(&[b"x"]), Key::of(&[b"y"])];
    assert_eq!(entries(&one, &keys[0]), []);
    // Values that are not a number, and the largest numbers.
    let values: Vec<Entry> =
        vec![(0, vec![]), (1, vec![0.1, f64::INFINITY, -0.0]), (u64::MAX, vec![f64::MIN_POSITIVE])];
    one.append(&keys[0], &values[0]).unwrap();
    other.append(&keys[0], &values[1]).unwrap();
    one.append(&keys[0], &values[2]).unwrap();
    one.append(&keys[1], &values[1]).unwrap();
    for cache in [&one, &other] {
        assert_eq!(
            (entries(cache, &keys[0]), entries(cache, &keys[1])),
            (values.clone(), vec![values[1].clone()])
        );
        cache.compact(&keys[0]).unwrap();
    }
    other.compact(&keys[1]).unwrap();
    assert_eq!(entries(&one, &keys[0]), values);
    let nan: Entry = (3, vec![f64::NAN]);
    one.append(&keys[0], &nan).unwrap();
    assert!(entries(&one, &keys[0])[2].1[0].is_nan());
    assert!(folder.path().join("CACHEDIR.TAG").is_file());
    let usage = one.usage().unwrap();
    assert_eq!((usage.keys, usage.files), (2, 3));
    let bytes: u64 = files(&folder).iter().map(|file| file.metadata().unwrap().len()).sum();
    assert_eq!(usage.bytes, bytes);
}

#[test]
fn what_was_not_used_for_long_goes_first() {
    let folder = TempDir::new().unwrap();
    let cache = Cache::at(folder.path());
    let keys: Vec<Key> = (0..4_u8).map(|key| Key::of(&[&[key]])).collect();
    for (key, name) in keys.iter().zip(0_u64..) {
        cache.append(key, &(name, vec![0.0; 9])).unwrap();
    }
    let day = |day: u64| SystemTime::UNIX_EPOCH + Duration::from_secs(86_400 * day);
    for (file, at) in files(&folder).into_iter().zip(1..) {
        File::open(file).unwrap().set_modified(day(at)).unwrap();
    }
    // The entries of the first file's key were used just now.
    let of_file =
        |file: &PathBuf| keys.iter().find(|key| file.to_string_lossy().contains(&key.to_string())).unwrap();
    let all = files(&folder);
    assert_eq!(entries(&cache, of_file(&all[0])).len(), 1);
    let size = all[0].metadata().unwrap().len();
    let left = cache.prune(2 * size).unwrap();
    assert_eq!(left, Usage { keys: 2, files: 2, bytes: 2 * size });
    assert_eq!(files(&folder), [all[0].clone(), all[3].clone()]);
    assert_eq!(cache.prune(0).unwrap(), Usage::default());
}

#[test]
fn damage_is_found_and_deleted() {
    let folder = TempDir::new().unwrap();
    let cache = Cache::at(folder.path());
    assert_eq!((cache.usage().unwrap(), cache.verify(false).unwrap().len()), (Usage::default(), 0));
    let keys = [Key::of(&[b"x"]), Key::of(&[b"y"])];
    for key in &keys {
        cache.append(key, &(7_u64, vec![1.0])).unwrap();
        cache.append(key, &(8_u64, vec![2.0])).unwrap();
    }
    assert_eq!(cache.verify(false).unwrap().len(), 0);
    let file = files(&folder).remove(0);
    let bytes = fs::read(&file).unwrap();
    // The last 4 bytes only mark the end of the blocks.
    fs::write(&file, &bytes[..bytes.len() - 5]).unwrap();
    let found: Vec<PathBuf> = cache.verify(false).unwrap().into_iter().map(|damage| damage.path).collect();
    assert_eq!(found, std::slice::from_ref(&file));
    // The first entry of the file is complete.
    let key = keys.iter().find(|key| file.to_string_lossy().contains(&key.to_string())).unwrap();
    assert_eq!(entries(&cache, key), [(7, vec![1.0])]);
    assert_eq!(cache.verify(true).unwrap().len(), 1);
    assert_eq!((cache.verify(false).unwrap().len(), cache.usage().unwrap().files), (0, 1));
}

#[test]
fn a_folder_that_cannot_be_written_is_named() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let error = Cache::at(&file).append(&Key::of(&[]), &1_u64).unwrap_err().to_string();
    assert!(error.starts_with(&format!("the cache at `{}", file.display())), "{error}");
}

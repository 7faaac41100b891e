//! Indices of lanes as files.

use super::file::LaneFile;
use super::*;

/// Lanes of so many elements, whose marks say where they are.
struct Numbers(LaneHead, Vec<u64>);

struct Number(u64, u64, u64);

impl MarkedLanes for Numbers {
    fn head(&self) -> &LaneHead {
        &self.0
    }

    fn open(&self, lane: u64) -> Result<Box<dyn ReadMarks>> {
        Ok(Box::new(Number(lane, 0, self.1[lane as usize])))
    }
}

impl ReadMarks for Number {
    fn next_mark(&mut self) -> Result<NextMark> {
        if self.1 + 64 > self.2 {
            return Ok(NextMark::End(self.2));
        }
        self.1 += 64;
        Ok(NextMark::At(format!("{}:{}", self.0, self.1)))
    }
}

fn written(counts: &[u64]) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lanes.gml");
    let head = LaneHead::new(vec!["lanes(count=3)".into()], vec!["a 7".into()], counts.len() as u64, 64);
    write(&path, &Numbers(head, counts.to_vec()), &mut |_| ()).unwrap();
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    std::fs::read(&path).unwrap()
}

#[test]
fn marks_are_found_by_lane_and_number() {
    let counts = [0, 63, 64, 64 * 64, 64 * 130 + 5];
    let file = LaneFile::of_bytes(written(&counts), Sums::Checked).unwrap();
    for (lane, count) in (0..).zip(counts) {
        assert_eq!(file.elements_of(lane), count);
        for mark in 1..=count / 64 {
            assert_eq!(file.mark(lane, mark).unwrap(), format!("{lane}:{}", 64 * mark));
        }
        assert!(file.mark(lane, count / 64 + 1).is_err() && file.mark(lane, 0).is_err());
    }
    assert!(file.mark(9, 1).is_err());
    assert_eq!(file.elements(), counts.iter().sum::<u64>());
}

#[test]
fn a_changed_byte_is_found_and_never_believed() {
    let counts = [70, 64 * 65, 3];
    let bytes = written(&counts);
    let whole = LaneFile::of_bytes(bytes.clone(), Sums::Checked).unwrap();
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 1 << (at % 8);
        super::fuzz_lanes(&changed);
        let Ok(file) = LaneFile::of_bytes(changed, Sums::Checked) else { continue };
        let mut failed = false;
        for (lane, count) in (0..).zip(counts) {
            for mark in 1..=count / 64 {
                match file.mark(lane, mark) {
                    Ok(text) => assert_eq!(text, whole.mark(lane, mark).unwrap()),
                    Err(error) => failed |= error.help_text().is_some_and(|help| help.contains("index --keys")),
                }
            }
        }
        assert!(failed, "byte {at}");
    }
    for end in 0..bytes.len() {
        super::fuzz_lanes(&bytes[..end]);
        assert!(LaneFile::of_bytes(bytes[..end].to_vec(), Sums::Checked).is_err());
    }
}

#[test]
fn the_first_that_differs_is_named() {
    let head = |stage: &str, file: &str| LaneHead::new(vec![stage.into()], vec![file.into()], 2, 64);
    let message = |wanted: LaneHead| head("lanes(count=2)", "a 7").check(&wanted).unwrap_err().message().to_owned();
    assert!(message(head("lanes(count=3)", "a 7")).contains("stage 0 was lanes(count=2) and is lanes(count=3)"));
    assert!(message(head("lanes(count=2)", "a 8")).contains("file 0 was a 7 and is a 8"));
}

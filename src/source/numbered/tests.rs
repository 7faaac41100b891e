use super::*;

/// Records of a single byte each.
struct Letters;

impl Numbered for Letters {
    type Record = Buffer;
    type Index = ();

    const NAME: &'static str = "letters";

    fn len(&self, file: &File<()>) -> u64 {
        file.content.len()
    }

    fn read(&self, file: &File<()>, record: u64) -> Result<Buffer> {
        let letter = file.content.read(record..record + 1)?;
        let is_letter = letter.as_bytes()[0].is_ascii_alphabetic();
        is_letter.then_some(letter).ok_or_else(|| Error::data("no letter"))
    }

    fn ranges(&self, _: &File<()>, record: u64) -> impl IntoIterator<Item = Range<u64>> {
        Some(record..record + 1)
    }
}

fn open(files: &[(&str, &[u8])]) -> Result<Files<Letters>> {
    let content = |&(name, bytes): &(&str, &[u8])| (name.into(), Buffer::copy_from(bytes).into());
    Files::open(Letters, files.iter().map(content).collect(), |_, opening| {
        opening.id.hash += 1;
        if opening.content.len() > 3 { Err(Error::data("too long")) } else { Ok(()) }
    })
}

#[test]
fn records_of_files_follow_each_other_and_errors_say_where() {
    let files = open(&[("a", b"xy"), ("b", b""), ("c", b"1z")]).unwrap();
    assert_eq!(files.len(), 4);
    let read = |index| files.read(index).map(|record| record.as_bytes().to_vec());
    assert_eq!([0, 1, 3].map(|index| read(index).unwrap()), [b"x", b"y", b"z"]);
    assert_eq!(read(2).unwrap_err().to_string(), "c: record 0: no letter");
    assert_eq!(read(4).unwrap_err().message(), "no record 4: there are 4");
    let many: Vec<_> = files.read_many(&[3, 2, 0]).into_iter().map(|record| record.is_ok()).collect();
    assert_eq!(many, [true, false, true]);
    assert_eq!((files.place(3), files.place(4)), (Some(("c".into(), 1)), None));
    assert_eq!(files.record_bytes(&files.read(0).unwrap()), 1);
    assert_eq!((files.facts().reads_far, files.facts().reads_together, files.looks_ahead()), (false, false, None));
}

#[test]
fn what_opening_finds_is_in_the_identity_and_its_errors_name_the_file() {
    let one = open(&[("a", b"xy")]).unwrap();
    let plain = Files::open(Letters, vec![("a".into(), Buffer::copy_from(b"xy").into())], |_, _| Ok(())).unwrap();
    assert_ne!(one.facts().identity, plain.facts().identity);
    assert!(one.facts().identity.starts_with("a, bytes=2, hash="), "{}", one.facts().identity);
    assert_eq!(open(&[("a", b"xy"), ("b", b"long")]).unwrap_err().to_string(), "b: too long");
}

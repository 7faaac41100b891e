//! Variable-length numbers, and the protocol buffer messages that consist of them.

/// Returns the number at the start of `bytes`, and its encoded length: 7 bits per byte, the lowest first, at most 10
/// bytes.
#[inline]
pub(crate) fn varint(bytes: &[u8]) -> Option<(u64, usize)> {
    let mut value = 0u64;
    for (i, &byte) in bytes.iter().enumerate().take(10) {
        // The tenth byte holds a single bit.
        if i == 9 && byte > 1 {
            return None;
        }
        value |= u64::from(byte & 0x7f) << (7 * i);
        if byte < 0x80 {
            return Some((value, i + 1));
        }
    }
    None
}

/// Appends `value` to `out`.
pub(crate) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Content of a field of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    /// 4 or 8 bytes.
    Fixed,
}

impl Field<'_> {
    /// Returns the number; 0 for other content.
    pub(crate) fn number(self) -> u64 {
        if let Self::Number(value) = self { value } else { 0 }
    }
}

/// Iterator over the fields of a message.
pub(crate) struct Fields<'a> {
    rest: &'a [u8],
}

/// Error for bytes that are not a protocol buffer message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Damaged;

impl<'a> Fields<'a> {
    pub(crate) fn of(message: &'a [u8]) -> Self {
        Self { rest: message }
    }
}

/// Number of a field, its content, and its content as encoded.
type Numbered<'a> = (u64, Field<'a>, &'a [u8]);

impl<'a> Iterator for Fields<'a> {
    type Item = Result<Numbered<'a>, Damaged>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let field = split_field(self.rest);
        // After a damaged field, the start of the next field is unknown.
        self.rest = field.map_or(&[], |(_, rest)| rest);
        Some(field.map(|(field, _)| field).ok_or(Damaged))
    }
}

/// Returns the first field of a message, and the rest of the message.
#[inline]
fn split_field(message: &[u8]) -> Option<(Numbered<'_>, &[u8])> {
    let (tag, used) = varint(message)?;
    let message = &message[used..];
    let (field, used) = match tag & 7 {
        0 => varint(message).map(|(value, used)| (Field::Number(value), used))?,
        1 => (Field::Fixed, 8),
        2 => {
            let (len, used) = varint(message)?;
            let end = used.checked_add(usize::try_from(len).ok()?)?;
            (Field::Bytes(message.get(used..end)?), end)
        }
        5 => (Field::Fixed, 4),
        _ => return None,
    };
    let (written, rest) = message.split_at_checked(used)?;
    Some(((tag >> 3, field, written), rest))
}

/// Calls `f` with the number and the content of every field of `message`. Returns `None` if `message` is damaged.
pub(crate) fn fields<'a>(message: &'a [u8], mut f: impl FnMut(u64, Field<'a>)) -> Option<()> {
    Fields::of(message).try_for_each(|field| field.map(|(number, field, _)| f(number, field))).ok()
}

/// Appends a field that contains a number.
pub(crate) fn put_number(out: &mut Vec<u8>, field: u64, value: u64) {
    put_varint(out, field << 3);
    put_varint(out, value);
}

/// Appends a field that contains bytes.
pub(crate) fn put_bytes(out: &mut Vec<u8>, field: u64, bytes: &[u8]) {
    put_varint(out, field << 3 | 2);
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_and_overlong_ones_are_refused() {
        for value in [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX] {
            let mut bytes = Vec::new();
            put_varint(&mut bytes, value);
            assert_eq!(varint(&bytes), Some((value, bytes.len())));
            assert_eq!(varint(&bytes[..bytes.len() - 1]), None);
        }
        assert_eq!(varint(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2]), None);
    }

    #[test]
    fn fields_are_read_and_unknown_ones_passed_over() {
        let mut message = Vec::new();
        put_number(&mut message, 1, 300);
        message.extend_from_slice(&[5 << 3 | 5, 1, 2, 3, 4]);
        put_bytes(&mut message, 2, b"ab");
        let mut seen = Vec::new();
        fields(&message, |number, field| seen.push((number, field))).unwrap();
        assert_eq!(seen, [(1, Field::Number(300)), (5, Field::Fixed), (2, Field::Bytes(b"ab"))]);
        assert_eq!(fields(&message[..message.len() - 1], |_, _| ()), None);
        assert_eq!(fields(&[1 << 3 | 2, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1], |_, _| ()), None);
    }
}

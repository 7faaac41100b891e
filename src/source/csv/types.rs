//! Types of the fields of a column.

use half::{bf16, f16};

use crate::element::DType;

/// Type of the fields of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CsvType {
    /// Text.
    Text,
    /// A scalar of this type; a `bool` is `true` or `false`, `1` or `0`.
    Number(DType),
}

impl CsvType {
    /// Returns the type with this name: `str`, `bool`, NumPy's `int64` or Rust's `i64`, and so on.
    pub fn from_name(name: &str) -> Option<Self> {
        if name == "str" {
            return Some(Self::Text);
        }
        let short = |dtype: &DType| match dtype {
            DType::F16 | DType::F32 | DType::F64 => dtype.name().replace("float", "f"),
            other => other.name().replace("uint", "u").replace("int", "i"),
        };
        let dtype = DType::from_name(name).or_else(|| DType::ALL.into_iter().find(|dtype| short(dtype) == name));
        dtype.map(Self::Number)
    }
}

/// Returns the bits of a number in the low bits of a word; `None` if the field is not a number of this type.
pub(super) fn bits(dtype: DType, text: &str) -> Option<u64> {
    let text = text.trim_ascii();
    Some(match dtype {
        DType::Bool => truth(text)?.into(),
        DType::U8 => text.parse::<u8>().ok()?.into(),
        DType::I8 => text.parse::<i8>().ok()? as u64,
        DType::U16 => text.parse::<u16>().ok()?.into(),
        DType::I16 => text.parse::<i16>().ok()? as u64,
        DType::U32 => text.parse::<u32>().ok()?.into(),
        DType::I32 => text.parse::<i32>().ok()? as u64,
        DType::U64 => text.parse().ok()?,
        DType::I64 => text.parse::<i64>().ok()? as u64,
        DType::F16 => f16::from_f64(text.parse().ok()?).to_bits().into(),
        DType::BF16 => bf16::from_f64(text.parse().ok()?).to_bits().into(),
        DType::F32 => text.parse::<f32>().ok()?.to_bits().into(),
        DType::F64 => text.parse::<f64>().ok()?.to_bits(),
    })
}

display_as!(CsvType, |self, f| {
    match self {
        Self::Text => f.write_str("str"),
        Self::Number(dtype) => dtype.fmt(f),
    }
});

fn truth(text: &str) -> Option<bool> {
    match text {
        "1" => Some(true),
        "0" => Some(false),
        word if word.eq_ignore_ascii_case("true") => Some(true),
        word if word.eq_ignore_ascii_case("false") => Some(false),
        _ => None,
    }
}

/// Type of a column, guessed from some of its fields.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Guess {
    seen: bool,
    /// Types in [`NUMBERS`] that do not fit all fields.
    excluded: [bool; 3],
}

/// Types to guess; the first that fits all fields wins.
const NUMBERS: [DType; 3] = [DType::I64, DType::F64, DType::Bool];

impl Guess {
    /// Adds a non-null field.
    pub(super) fn add(&mut self, text: &str) {
        self.seen = true;
        for (excluded, dtype) in self.excluded.iter_mut().zip(NUMBERS) {
            *excluded |= bits(dtype, text).is_none();
        }
    }

    /// Returns the guessed type: text if there were no fields, or no other type fits.
    pub(super) fn result(self) -> CsvType {
        let fits = NUMBERS.into_iter().zip(self.excluded).find(|(_, excluded)| self.seen && !excluded);
        fits.map_or(CsvType::Text, |(dtype, _)| CsvType::Number(dtype))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_have_names() {
        for (name, dtype) in [("i64", DType::I64), ("u8", DType::U8), ("f32", DType::F32), ("bfloat16", DType::BF16)] {
            assert_eq!(CsvType::from_name(name), Some(CsvType::Number(dtype)));
            assert_eq!(CsvType::from_name(dtype.name()), Some(CsvType::Number(dtype)));
        }
        assert_eq!(CsvType::from_name("str"), Some(CsvType::Text));
        assert_eq!(CsvType::from_name("string"), None);
    }

    #[test]
    fn the_narrowest_type_that_all_fields_have_is_guessed() {
        let guess = |fields: &[&str]| {
            let mut guess = Guess::default();
            fields.iter().for_each(|field| guess.add(field));
            guess.result().to_string()
        };
        assert_eq!(guess(&["1", " -2", "+3"]), "int64");
        assert_eq!(guess(&["1", "2.5", "nan", "1e3"]), "float64");
        assert_eq!(guess(&["18446744073709551615"]), "float64");
        assert_eq!(guess(&["true", "False"]), "bool");
        assert_eq!(guess(&["true", "2"]), "str");
        assert_eq!(guess(&["1", "", "2"]), "str");
        assert_eq!(guess(&[]), "str");
    }

    #[test]
    fn numbers_out_of_range_are_none() {
        let parse = |name: &str, text: &str| match CsvType::from_name(name) {
            Some(CsvType::Number(dtype)) => bits(dtype, text).is_some(),
            other => panic!("{name} is {other:?}"),
        };
        assert!(parse("u8", "255") && !parse("u8", "256") && !parse("u8", "-1") && !parse("i64", "1.0"));
        assert!(parse("bool", "0") && !parse("bool", "yes") && parse("f16", "0.5") && !parse("f32", ""));
    }
}

//! Description of packed rows: features, lengths and output names.

use std::fmt;

use crate::element::{DType, Name};
use crate::error::{Error, Result};
use crate::pack::feature::{self, Feature};

/// Naming scheme for the outputs of a packed feature.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OutputNames {
    /// Grain's names: `<feature>`, `<feature>_segment_ids`, `<feature>_positions`.
    #[default]
    Grain,
    /// MaxText's names: `<feature>`, `<feature>_segmentation`, `<feature>_position`.
    ///
    /// A single packed feature becomes `inputs`, regardless of its name. `targets` holds its cells shifted left by one within each
    /// sequence: `targets[t] = inputs[t + 1]`. The last token of a sequence and padding have no target.
    /// At these cells, `targets` is padding, and `targets_segmentation` and `targets_position` are 0.
    /// A loss masked by the segmentation therefore never predicts the first token of another sequence.
    MaxText,
}

impl OutputNames {
    pub(super) fn suffixes(self) -> [&'static str; 3] {
        match self {
            Self::Grain => ["", "_segment_ids", "_positions"],
            Self::MaxText => ["", "_segmentation", "_position"],
        }
    }
}

/// Features of packed rows and their layout.
///
/// Features are arrays of shape `[len]` or `[len, …]`, with equal dtype and inner dimensions in all elements.
/// A scalar is a sequence of length 1. Unlisted fields of an element are dropped, with a single warning that lists them.
#[derive(Clone, Debug, PartialEq)]
pub struct RowSpec {
    lengths: Vec<(Name, usize)>,
    aligned: Vec<(Name, usize)>,
    padded: Vec<(Name, f64)>,
    meta: Vec<Name>,
    names: OutputNames,
}

/// Rows of `tokens`, the feature of [`tokenise`](crate::text::TokeniseMap::tokenise), with this length.
impl From<usize> for RowSpec {
    fn from(tokens: usize) -> Self {
        Self::new([("tokens", tokens)])
    }
}

impl RowSpec {
    /// Creates rows of these features, each with its row length in cells.
    pub fn new<N: AsRef<str>>(features: impl IntoIterator<Item = (N, usize)>) -> Self {
        let lengths = features.into_iter().map(|(name, length)| (Name::new(name), length)).collect();
        Self { lengths, aligned: Vec::new(), padded: Vec::new(), meta: Vec::new(), names: OutputNames::Grain }
    }

    /// Aligns sequences of `feature` to multiples of `cells`. Gaps have segment id 0.
    #[must_use]
    pub fn align(mut self, feature: impl AsRef<str>, cells: usize) -> Self {
        self.aligned.push((Name::new(feature), cells));
        self
    }

    /// Sets the padding of `feature` to `value` instead of 0. The value must be valid for the feature's dtype.
    #[must_use]
    pub fn padding(mut self, feature: impl AsRef<str>, value: f64) -> Self {
        self.padded.push((Name::new(feature), value));
        self
    }

    /// Adds meta features, which get no segment ids and positions.
    ///
    /// A meta feature with a row length is packed like other features. Otherwise a row holds a list of its elements' values.
    #[must_use]
    pub fn meta_features<N: AsRef<str>>(mut self, features: impl IntoIterator<Item = N>) -> Self {
        self.meta.extend(features.into_iter().map(Name::new));
        self
    }

    /// Sets the output names.
    #[must_use]
    pub fn names(mut self, names: OutputNames) -> Self {
        self.names = names;
        self
    }

    /// Returns the names of the packed features.
    pub fn features(&self) -> impl ExactSizeIterator<Item = &str> {
        self.lengths.iter().map(|(name, _)| name.as_str())
    }

    /// Returns the meta features whose values are listed per row.
    pub(super) fn listed(&self) -> impl Iterator<Item = &Name> {
        self.meta.iter().filter(|name| self.position(name).is_none())
    }

    /// Returns the index of a packed feature.
    pub(super) fn position(&self, name: &str) -> Option<usize> {
        self.lengths.iter().position(|(n, _)| n == name)
    }

    /// Returns the output names of feature number `at`: values, segment ids and positions, then the three names for targets.
    ///
    /// Absent outputs are omitted. A meta feature has only values.
    pub(super) fn outputs(&self, at: usize) -> Vec<String> {
        let name = self.lengths[at].0.as_str();
        if self.meta.iter().any(|m| m == name) {
            return vec![name.to_owned()];
        }
        let suffixed = |name: &str| self.names.suffixes().map(|suffix| format!("{name}{suffix}"));
        if self.shifts() {
            return [suffixed("inputs"), suffixed("targets")].concat();
        }
        suffixed(name).to_vec()
    }

    /// Returns true if the single feature is also yielded shifted, as targets.
    fn shifts(&self) -> bool {
        self.names == OutputNames::MaxText
            && self.lengths.iter().filter(|(name, _)| !self.meta.contains(name)).count() == 1
    }

    /// Returns the features for the kernels. `cells` contains the dtype and inner dimensions of each feature.
    ///
    /// # Errors
    /// `Config` if a name is not packed, or a value is invalid.
    pub(super) fn resolve(&self, cells: &[(DType, Vec<usize>)]) -> Result<Vec<Feature>> {
        let named = self.aligned.iter().map(|(name, _)| name).chain(self.padded.iter().map(|(name, _)| name));
        if let Some(name) = named.into_iter().find(|name| self.position(name).is_none()) {
            let known: Vec<_> = self.features().collect();
            return Err(Error::config(format!("feature {name:?} is not packed; {} are", known.join(", "))));
        }
        let mut features = Vec::with_capacity(self.lengths.len());
        for ((name, length), (dtype, inner)) in self.lengths.iter().zip(cells) {
            let align = self.aligned.iter().rfind(|(n, _)| n == name).map_or(1, |(_, cells)| *cells);
            let meta = self.meta.contains(name);
            let numbers = inner.iter().try_fold(1usize, |n, &dim| n.checked_mul(dim));
            let cell = numbers.and_then(|n| n.checked_mul(dtype.size())).unwrap_or(0);
            let padding = match self.padded.iter().rfind(|(n, _)| n == name) {
                Some((_, value)) => {
                    number_bytes(*dtype, *value).map_err(|e| in_feature(name, &e))?.repeat(cell / dtype.size())
                }
                None => Vec::new(),
            };
            let shifted = self.shifts() && !meta;
            let name = name.clone();
            features.push(Feature { name, length: *length, cell, align, padding, shifted, meta, counted: false });
        }
        feature::check(&features)?;
        Ok(features)
    }

    /// Returns the features for planning, which writes nothing. Cells have 1 byte, regardless of the dtype.
    pub(super) fn resolve_counted(&self) -> Result<Vec<Feature>> {
        let features = self.resolve(&vec![(DType::F64, Vec::new()); self.lengths.len()])?;
        let counted = |feature| Feature { cell: 1, padding: Vec::new(), shifted: false, counted: true, ..feature };
        Ok(features.into_iter().map(counted).collect())
    }

    /// Checks the configuration before the first element.
    ///
    /// # Errors
    /// `Config` if a feature is invalid, or two outputs have equal names.
    pub(super) fn check(&self) -> Result<()> {
        // Any padding fits a double. The check against the real dtype follows at the first element.
        let cells = vec![(DType::F64, Vec::new()); self.lengths.len()];
        self.resolve(&cells)?;
        let mut names: Vec<String> = (0..self.lengths.len()).flat_map(|at| self.outputs(at)).collect();
        names.extend(self.listed().map(|name| name.to_string()));
        names.sort();
        match names.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(Error::config(format!("two outputs of a packed row are named {:?}", pair[0]))),
            None => Ok(()),
        }
    }
}

impl fmt::Display for RowSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (name, length)) in self.lengths.iter().enumerate() {
            write!(f, "{}{name}:{length}", if at == 0 { "features=" } else { " " })?;
        }
        for (name, cells) in &self.aligned {
            write!(f, ", align={name}:{cells}")?;
        }
        for (name, value) in &self.padded {
            write!(f, ", padding={name}:{value}")?;
        }
        if !self.meta.is_empty() {
            write!(f, ", meta_features={}", self.meta.join(" "))?;
        }
        if self.names != OutputNames::Grain {
            write!(f, ", names=maxtext")?;
        }
        Ok(())
    }
}

/// Adds the feature to the message of `error`.
pub(super) fn in_feature(name: &str, error: &Error) -> Error {
    Error::new(error.kind(), format!("feature {name:?}: {}", error.message()))
}

/// Returns the bytes of `value` as a number of `dtype`.
///
/// # Errors
/// `Config` if `dtype` is an integer or bool and cannot represent the value.
pub(super) fn number_bytes(dtype: DType, value: f64) -> Result<Vec<u8>> {
    macro_rules! integer {
        ($type:ty) => {
            if value.fract() == 0.0 && value >= <$type>::MIN as f64 && value < <$type>::MAX as f64 + 1.0 {
                Some((value as $type).to_le_bytes().to_vec())
            } else {
                None
            }
        };
    }
    let bytes = match dtype {
        DType::Bool => (value == 0.0 || value == 1.0).then(|| vec![value as u8]),
        DType::U8 => integer!(u8),
        DType::I8 => integer!(i8),
        DType::U16 => integer!(u16),
        DType::I16 => integer!(i16),
        DType::U32 => integer!(u32),
        DType::I32 => integer!(i32),
        DType::U64 => integer!(u64),
        DType::I64 => integer!(i64),
        DType::F16 => Some(half::f16::from_f64(value).to_le_bytes().to_vec()),
        DType::BF16 => Some(half::bf16::from_f64(value).to_le_bytes().to_vec()),
        DType::F32 => Some((value as f32).to_le_bytes().to_vec()),
        DType::F64 => Some(value.to_le_bytes().to_vec()),
    };
    bytes.ok_or_else(|| Error::config(format!("{value} is no value of {dtype}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_must_be_of_the_dtype() {
        assert_eq!(number_bytes(DType::I32, -1.0).unwrap(), [255; 4]);
        assert_eq!(number_bytes(DType::U8, 255.0).unwrap(), [255]);
        assert_eq!(number_bytes(DType::F32, 0.5).unwrap(), 0.5f32.to_le_bytes());
        assert_eq!(number_bytes(DType::I64, -9.0).unwrap(), (-9i64).to_le_bytes());
        for (dtype, value) in [(DType::U16, -1.0), (DType::U8, 256.0), (DType::I32, 0.5), (DType::Bool, 2.0)] {
            assert!(number_bytes(dtype, value).is_err(), "{dtype} {value}");
        }
        assert!(number_bytes(DType::U64, u64::MAX as f64).is_err());
    }

    #[test]
    fn names_that_are_not_packed_or_come_twice_are_refused() {
        let rows = RowSpec::new([("a", 4), ("b", 2)]);
        rows.check().unwrap();
        let error = rows.clone().align("c", 2).check().unwrap_err();
        assert_eq!(error.message(), "feature \"c\" is not packed; a, b are");
        assert!(RowSpec::new([("a", 4), ("a_positions", 4)]).check().is_err());
        assert!(RowSpec::new([("a", 0)]).check().is_err());
        let error = rows.padding("a", 0.5).resolve(&[(DType::I32, vec![]), (DType::I32, vec![])]).unwrap_err();
        assert_eq!(error.message(), "feature \"a\": 0.5 is no value of int32");
    }

    #[test]
    fn one_feature_becomes_inputs_and_targets() {
        let rows = RowSpec::new([("tokens", 4)]).names(OutputNames::MaxText);
        let six =
            ["inputs", "inputs_segmentation", "inputs_position", "targets", "targets_segmentation", "targets_position"];
        assert_eq!(rows.outputs(0), six);
        let two = RowSpec::new([("inputs", 4), ("targets", 4)]).names(OutputNames::MaxText);
        assert_eq!([two.outputs(0), two.outputs(1)].concat(), six);
    }
}

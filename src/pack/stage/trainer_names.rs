//! Columns of packed rows as trainers expect them.

use super::packed_columns::{Labels, add, whole};
use crate::element::{Array, DType, Element, Name, Value};
use crate::error::{Error, Result};

/// The names, dtypes and shapes of a trainer's columns. Rows are flattened to a single sequence for each trainer.
///
/// | | tokens, positions, labels (`i64`) | bounds of segments (`i32`) |
/// |---|---|---|
/// | `HuggingFace` | `input_ids`, `position_ids`, `labels`, `[1, cells]` | `cu_seq_lens_q`, `cu_seq_lens_k`, `max_length_q`, `max_length_k` |
/// | `Torchtitan` | `input`, `positions`, `labels`, `[cells]` | – |
/// | `Thd` | `tokens`, `position_ids`, `labels`, `[cells]` | `cu_seqlens_q`, `cu_seqlens_kv`, `max_seqlen_q`, `max_seqlen_kv` |
///
/// Source: `DataCollatorWithFlattening` of `transformers` 5, the `TextCollator` of torchtitan, and `PackedSeqParams` of Megatron
/// Core, whose layout `thd` is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TrainerNames {
    /// Columns keep their names and shapes.
    #[default]
    Grain,
    /// Hugging Face's Trainer and TRL, for models that shift labels.
    HuggingFace,
    /// torchtitan from August 2026 on.
    Torchtitan,
    /// Megatron Core and Transformer Engine.
    Thd,
}

display_as!(TrainerNames, |self, f| {
    f.write_str(match self {
        Self::Grain => "grain",
        Self::HuggingFace => "hf",
        Self::Torchtitan => "torchtitan",
        Self::Thd => "thd",
    })
});

/// What a trainer expects.
struct Layout {
    /// Names of the tokens and of the positions.
    sequence: [&'static str; 2],
    /// Names of the starts of segments and of their longest length, each for queries and for keys.
    bounds: Option<[[&'static str; 2]; 2]>,
    labels: Labels,
    /// Whether the sequence is a batch of one row.
    is_row: bool,
}

impl TrainerNames {
    fn layout(self) -> Option<Layout> {
        Some(match self {
            Self::Grain => return None,
            Self::HuggingFace => Layout {
                sequence: ["input_ids", "position_ids"],
                bounds: Some([["cu_seq_lens_q", "cu_seq_lens_k"], ["max_length_q", "max_length_k"]]),
                labels: Labels::Unshifted,
                is_row: true,
            },
            Self::Torchtitan => {
                Layout { sequence: ["input", "positions"], bounds: None, labels: Labels::Shifted, is_row: false }
            }
            Self::Thd => Layout {
                sequence: ["tokens", "position_ids"],
                bounds: Some([["cu_seqlens_q", "cu_seqlens_kv"], ["max_seqlen_q", "max_seqlen_kv"]]),
                labels: Labels::Shifted,
                is_row: false,
            },
        })
    }

    /// Returns the labels that the trainer expects.
    pub(super) fn labels(self) -> Option<Labels> {
        self.layout().map(|layout| layout.labels)
    }

    /// Returns true if the trainer expects the bounds of segments.
    pub(super) fn has_bounds(self) -> bool {
        self.layout().is_some_and(|layout| layout.bounds.is_some())
    }

    /// Gives the columns of a packed feature their names and shapes. Removes the segment ids.
    ///
    /// # Errors
    /// A data error if tokens or positions are not whole numbers, or if another column has a name of the trainer's.
    pub(super) fn rename(self, mut element: Element, feature: &Name, columns: &[String; 2]) -> Result<Element> {
        let Some(layout) = self.layout() else { return Ok(element) };
        let [ids, positions] = columns;
        let mut take = |name: &str| match element.remove(name) {
            Some(Value::Array(array)) => Ok(array),
            _ => Err(Error::data(format!("there is no column `{name}`, which packing makes"))),
        };
        let flat = |name: &str, array: Array| {
            let cells = array.size();
            let shape: &[usize] = if layout.is_row { &[1, cells] } else { &[cells] };
            Array::new(DType::I64, shape, whole(DType::I64, name, &array)?.buffer().clone())
        };
        take(ids)?;
        let [tokens, places] = layout.sequence;
        let mut made = vec![
            (tokens, flat(feature, take(feature)?)?),
            (places, flat(positions, take(positions)?)?),
            ("labels", flat("labels", take("labels")?)?),
        ];
        if let Some([starts, longest]) = layout.bounds {
            for (names, array) in [(starts, take("cu_seqlens")?), (longest, take("max_seqlen")?)] {
                made.extend(names.map(|name| (name, array.clone())));
            }
        }
        add(&mut element, made)?;
        Ok(element)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::Facts;
    use crate::dataset::map::Each;
    use crate::pack::PackedColumns;

    fn batch() -> Element {
        let of = |rows: [[i32; 4]; 2]| {
            let mut array = Array::builder(DType::I32, &[2, 4]).unwrap();
            array.as_mut_slice().copy_from_slice(rows.as_flattened());
            array.freeze()
        };
        Element::new()
            .with("tokens", of([[11, 12, 21, 0], [31, 32, 33, 34]]))
            .with("tokens_segment_ids", of([[1, 1, 2, 0], [1, 1, 1, 1]]))
            .with("tokens_positions", of([[0, 1, 0, 0], [0, 1, 2, 3]]))
    }

    fn made(names: TrainerNames) -> Element {
        let columns = PackedColumns::new("tokens").names(names);
        columns.check().unwrap();
        columns.apply(0, batch()).unwrap().unwrap()
    }

    #[test]
    fn each_trainer_has_its_names_shapes_and_labels() {
        let hf = made(TrainerNames::HuggingFace);
        let names: Vec<&str> = hf.iter().map(|(name, _)| name).collect();
        let bounds = ["cu_seq_lens_q", "cu_seq_lens_k", "max_length_q", "max_length_k"];
        assert_eq!(names, [&["input_ids", "position_ids", "labels"], &bounds[..]].concat());
        let i64s = |element: &Element, name: &str| {
            let array = element.array(name).unwrap();
            (array.shape().to_vec(), array.as_slice::<i64>().unwrap().to_vec())
        };
        assert_eq!(i64s(&hf, "input_ids"), (vec![1, 8], vec![11, 12, 21, 0, 31, 32, 33, 34]));
        assert_eq!(i64s(&hf, "labels").1, [-100, 12, -100, -100, -100, 32, 33, 34]);
        assert_eq!(hf.array("cu_seq_lens_q").unwrap().as_slice::<i32>().unwrap(), [0, 2, 3, 4, 8]);
        assert_eq!(hf.array("max_length_k").unwrap().as_i64(), Some(4));
        let titan = made(TrainerNames::Torchtitan);
        assert_eq!(titan.iter().map(|(name, _)| name).collect::<Vec<_>>(), ["input", "positions", "labels"]);
        assert_eq!(i64s(&titan, "labels"), (vec![8], vec![12, -100, -100, -100, 32, 33, 34, -100]));
        assert_eq!(i64s(&titan, "positions").1, [0, 1, 0, 0, 0, 1, 2, 3]);
        let thd = made(TrainerNames::Thd);
        assert_eq!(thd.array("cu_seqlens_kv").unwrap().as_slice::<i32>().unwrap(), [0, 2, 3, 4, 8]);
        assert_eq!(i64s(&thd, "tokens").0, [8]);
    }

    #[test]
    fn a_column_with_a_name_of_the_trainer_is_refused() {
        let columns = PackedColumns::new("tokens").names(TrainerNames::Torchtitan);
        let error = columns.apply(0, batch().with("input", Array::scalar(1i64))).unwrap_err();
        assert_eq!(error.message(), "there is a column `input` already");
        let floats = batch().with("tokens", Array::from_vec(vec![1.5f32; 8]));
        assert!(columns.apply(0, floats).is_err());
    }
}

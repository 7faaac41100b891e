//! Values of records as JSON for people.

use half::{bf16, f16};
use serde_json::{Value as Json, json};

use crate::source::ExampleParser;
use crate::{Array, Buffer, DType, Element, Value};

/// Maximum number of array items that are shown.
const SHOWN: usize = 64;
/// Maximum number of bytes that are shown as text; `SHOWN_BYTES` applies to hexadecimal.
const SHOWN_TEXT: usize = 4096;
const SHOWN_BYTES: usize = 32;

/// Converts a value to JSON. Long arrays are cut, and end with the number of omitted items.
pub(crate) fn value(value: &Value) -> Json {
    match value {
        Value::Str(text) => json!(**text),
        Value::Bytes(buffer) => bytes(buffer),
        Value::List(items) => items.iter().map(self::value).collect::<Vec<_>>().into(),
        Value::Tree(tree) => element(tree),
        Value::Array(array) => self::array(array),
        _ => Json::Null,
    }
}

fn element(element: &Element) -> Json {
    element.iter().map(|(name, value)| (name.to_owned(), self::value(value))).collect::<serde_json::Map<_, _>>().into()
}

/// Converts bytes to JSON: a TensorFlow example, text, or the length with the first bytes in hexadecimal.
fn bytes(buffer: &Buffer) -> Json {
    let bytes = buffer.as_bytes();
    // Empty bytes, and many other bytes, parse as a message without features.
    if let Some(example) = ExampleParser::inferred().parse(buffer).ok().filter(|example| example.iter().len() > 0) {
        return json!({"bytes": bytes.len(), "example": element(&example)});
    }
    let is_shown = |c: char| !c.is_control() || matches!(c, '\n' | '\t' | '\r');
    let text = std::str::from_utf8(&bytes[..bytes.len().min(SHOWN_TEXT)]).ok();
    if let Some(text) = text.filter(|text| !text.is_empty() && text.chars().all(is_shown)) {
        json!({"bytes": bytes.len(), "text": text})
    } else {
        let shown = &bytes[..bytes.len().min(SHOWN_BYTES)];
        let hex: Vec<String> = shown.iter().map(|byte| format!("{byte:02x}")).collect();
        let more = if shown.len() < bytes.len() { " …" } else { "" };
        json!({"bytes": bytes.len(), "hex": hex.join(" ") + more})
    }
}

fn array(array: &Array) -> Json {
    match array.shape() {
        [] => scalar(array).unwrap_or_else(|| json!(format!("{array:?}"))),
        &[len] => {
            let shown = (0..len.min(SHOWN)).filter_map(|i| scalar(&array.row(i)?));
            let mut items: Vec<_> = shown.collect();
            if len > SHOWN {
                items.push(json!(format!("… {} more", len - SHOWN)));
            }
            items.into()
        }
        _ => json!(format!("{array:?}")),
    }
}

/// Returns a number, or a boolean for a mask. Numbers that JSON lacks become text: `NaN`, `inf`.
fn scalar(array: &Array) -> Option<Json> {
    fn first<T: crate::element::Scalar + Copy>(array: &Array) -> Option<T> {
        array.as_slice::<T>().ok()?.first().copied()
    }
    let float = match array.dtype() {
        DType::Bool => return array.as_i64().map(|bit| json!(bit != 0)),
        DType::U64 => return first::<u64>(array).map(|n| json!(n)),
        DType::F16 => first::<f16>(array)?.to_f64(),
        DType::BF16 => first::<bf16>(array)?.to_f64(),
        // Uses the shortest form as a 32-bit float.
        DType::F32 => first::<f32>(array)?.to_string().parse().ok()?,
        DType::F64 => first(array)?,
        _ => return array.as_i64().map(|n| json!(n)),
    };
    Some(if float.is_finite() { json!(float) } else { json!(float.to_string()) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::encode_example;

    #[test]
    fn numbers_of_every_type_are_numbers() {
        let halves = Array::from_vec(vec![f16::from_f32(0.5), f16::NAN]);
        assert_eq!(array(&halves), json!([0.5, "NaN"]));
        assert_eq!(array(&Array::from_vec(vec![bf16::from_f32(2.0)])), json!([2.0]));
        assert_eq!(array(&Array::from_vec(vec![0.1f32])), json!([0.1]));
        assert_eq!(array(&Array::from_vec(vec![u64::MAX])), json!([u64::MAX]));
        let mask = Array::new(DType::Bool, &[2], Buffer::from_vec(vec![1u8, 0])).unwrap();
        assert_eq!(array(&mask), json!([true, false]));
        assert_eq!(array(&Array::from_vec(vec![1i8; 66])).as_array().unwrap().len(), 65);
    }

    #[test]
    fn bytes_say_what_they_are() {
        let of = |bytes: &[u8]| value(&Value::Bytes(Buffer::from_vec(bytes.to_vec())));
        assert_eq!(of(b"{\"a\": 1}\n"), json!({"bytes": 9, "text": "{\"a\": 1}\n"}));
        assert_eq!(of(&[0, 255]), json!({"bytes": 2, "hex": "00 ff"}));
        assert!(of(&[200; 99])["hex"].as_str().unwrap().ends_with(" …"));
        assert_eq!(of(&[]), json!({"bytes": 0, "hex": ""}));
        let example = encode_example(&Element::new().with("label", Array::from_vec(vec![7i64]))).unwrap();
        assert_eq!(of(&example)["example"], json!({"label": [7]}), "{}", of(&example));
    }
}

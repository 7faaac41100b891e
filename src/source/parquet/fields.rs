//! Fields that the `parquet` crate reads in headers, footers and page indices.
//!
//! The crate identifies fields only by number. It reads each field as the format's type, even if the file declares
//! another type, and then misinterprets the bytes.
//!
//! Source: [parquet.thrift](https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift).

use Type::{Binary, Bool, Byte, Double, List, Number, Struct};

/// Number of a field, and the type that the crate reads.
pub(super) type Field = (i16, Type);

#[derive(Clone, Copy)]
pub(super) enum Type {
    Bool,
    Byte,
    /// Integer of 16, 32 or 64 bits. All widths have equal encodings.
    Number,
    Double,
    Binary,
    List(&'static Type),
    Struct(&'static [Field]),
}

impl Type {
    /// Returns true if a value with this declared type is read correctly.
    pub(super) fn is(self, kind: u8) -> bool {
        match self {
            Bool => matches!(kind, 1 | 2),
            Byte => kind == 3,
            Number => matches!(kind, 4..=6),
            Double => kind == 7,
            Binary => kind == 8,
            List(_) => matches!(kind, 9 | 10),
            Struct(_) => kind == 12,
        }
    }
}

/// Header of a page. Its statistics are not read.
pub(super) const PAGE: &[Field] = &[
    (1, Number),
    (2, Number),
    (3, Number),
    (4, Number),
    (5, Struct(&[(1, Number), (2, Number), (3, Number), (4, Number)])),
    (6, EMPTY),
    (7, Struct(&[(1, Number), (2, Number), (3, Bool)])),
    (8, Struct(&[(1, Number), (2, Number), (3, Number), (4, Number), (5, Number), (6, Number), (7, Bool)])),
];

/// Positions of the pages of a column.
pub(super) const OFFSET_INDEX: &[Field] =
    &[(1, List(&Struct(&[(1, Number), (2, Number), (3, Number)]))), (2, List(&Number))];

pub(super) const FOOTER: &[Field] = &[
    (1, Number),
    (2, List(&Struct(SCHEMA_ELEMENT))),
    (3, Number),
    (4, List(&Struct(ROW_GROUP))),
    (5, List(&Struct(&[(1, Binary), (2, Binary)]))),
    (6, Binary),
    (7, List(&Struct(COLUMN_ORDER))),
    (8, Struct(ENCRYPTION)),
    (9, Binary),
];

const SCHEMA_ELEMENT: &[Field] = &[
    (1, Number),
    (2, Number),
    (3, Number),
    (4, Binary),
    (5, Number),
    (6, Number),
    (7, Number),
    (8, Number),
    (9, Number),
    (10, Struct(LOGICAL_TYPE)),
];

const LOGICAL_TYPE: &[Field] = &[
    (1, EMPTY),
    (2, EMPTY),
    (3, EMPTY),
    (4, EMPTY),
    (5, Struct(&[(1, Number), (2, Number)])),
    (6, EMPTY),
    (7, TIME),
    (8, TIME),
    (10, Struct(&[(1, Byte), (2, Bool)])),
    (11, EMPTY),
    (12, EMPTY),
    (13, EMPTY),
    (14, EMPTY),
    (15, EMPTY),
    (16, Struct(&[(1, Byte)])),
    (17, Struct(&[(1, Binary)])),
    (18, Struct(&[(1, Binary), (2, Number)])),
    (19, EMPTY),
];

const TIME: Type = Struct(&[(1, Bool), (2, Struct(&[(1, EMPTY), (2, EMPTY), (3, EMPTY)]))]);

const COLUMN_ORDER: &[Field] = &[(1, EMPTY), (2, EMPTY), (3, EMPTY)];

const ROW_GROUP: &[Field] = &[
    (1, List(&Struct(COLUMN))),
    (2, Number),
    (3, Number),
    (4, List(&Struct(&[(1, Number), (2, Bool), (3, Bool)]))),
    (5, Number),
    (7, Number),
];

const COLUMN: &[Field] = &[
    (1, Binary),
    (2, Number),
    (3, Struct(COLUMN_METADATA)),
    (4, Number),
    (5, Number),
    (6, Number),
    (7, Number),
    (8, Struct(&[(1, EMPTY), (2, Struct(&[(1, List(&Binary)), (2, Binary)]))])),
    (9, Binary),
];

const COLUMN_METADATA: &[Field] = &[
    (1, Number),
    (2, List(&Number)),
    (4, Number),
    (5, Number),
    (6, Number),
    (7, Number),
    (9, Number),
    (10, Number),
    (11, Number),
    (12, Struct(STATISTICS)),
    (13, List(&Struct(&[(1, Number), (2, Number), (3, Number)]))),
    (14, Number),
    (15, Number),
    (16, Struct(&[(1, Number), (2, List(&Number)), (3, List(&Number))])),
    (17, Struct(&[(1, Struct(BOUNDING_BOX)), (2, List(&Number))])),
];

const STATISTICS: &[Field] =
    &[(1, Binary), (2, Binary), (3, Number), (4, Number), (5, Binary), (6, Binary), (7, Bool), (8, Bool), (9, Number)];

const BOUNDING_BOX: &[Field] =
    &[(1, Double), (2, Double), (3, Double), (4, Double), (5, Double), (6, Double), (7, Double), (8, Double)];

/// Read only if another crate enables the feature `encryption` of the `parquet` crate.
const ENCRYPTION: &[Field] = &[(1, AES), (2, AES)];

const AES: Type = Struct(&[(1, Binary), (2, Binary), (3, Bool)]);

const EMPTY: Type = Struct(&[]);

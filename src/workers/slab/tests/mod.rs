//! Tests of the parts together.

mod twin;

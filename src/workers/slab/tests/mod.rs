//! Tests of the parts together.

mod epochs;
mod fork;
mod leases;
mod mapping;
mod twin;

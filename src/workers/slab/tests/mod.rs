//! Tests of the parts together.

mod cost;
mod epochs;
mod fork;
mod leases;
mod mapping;
mod twin;

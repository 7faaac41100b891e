//! Shared memory that the parent alone hands out: extents of one sealed memory file, held by leases.

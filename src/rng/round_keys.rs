//! C++'s `std::seed_seq`, the source of the keys of Grain's permutation.

const INITIAL: u32 = 0x8b8b_8b8b;

/// Computes `std::seed_seq{seed}.generate(keys)`, for at least two keys.
///
/// # Source
/// ISO C++17, 29.6.7.1 `rand.util.seedseq`, for a sequence of one number.
#[inline(always)]
pub(crate) fn fill(seed: u32, keys: &mut [u32]) {
    let n = keys.len();
    debug_assert!(n >= 2);
    keys.fill(INITIAL);
    let tail = match n {
        ..7 => (n - 1) / 2,
        7..39 => 3,
        39..68 => 5,
        68..623 => 7,
        _ => 11,
    };
    let (p, q) = ((n - tail) / 2, (n - tail) / 2 + tail);
    let mixed = |word: u32| word ^ (word >> 27);
    let around = |k: usize| ((k + p) % n, (k + q) % n, (k + n - 1) % n);
    for k in 0..n {
        let (near, far, before) = around(k);
        let spread = mixed(keys[k] ^ keys[near] ^ keys[before]).wrapping_mul(1_664_525);
        let seeded = spread.wrapping_add(match k {
            0 => 1,
            1 => seed.wrapping_add(1),
            _ => k as u32,
        });
        keys[near] = keys[near].wrapping_add(spread);
        keys[far] = keys[far].wrapping_add(seeded);
        keys[k] = seeded;
    }
    for k in 0..n {
        let (near, far, before) = around(k);
        let spread = mixed(keys[k].wrapping_add(keys[near]).wrapping_add(keys[before])).wrapping_mul(1_566_083_941);
        let reduced = spread.wrapping_sub(k as u32);
        keys[near] ^= spread;
        keys[far] ^= reduced;
        keys[k] = reduced;
    }
}

/// Returns the keys of four rounds. The constant count lets the compiler unroll loops and remove remainders.
pub(crate) fn four(seed: u32) -> [u32; 4] {
    let mut keys = [0; 4];
    fill(seed, &mut keys);
    keys
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Number of keys, first three keys, last key, and a hash of all keys by `31 * hash + key`.
    type Row = (u32, usize, [u32; 4], u32);

    // Produced by `std::seed_seq` of libstdc++, GCC 12.2.
    const ROWS: [Row; 10] = [
        (0, 4, [2963817213, 69796629, 1973464570, 532167439], 3370999309),
        (0, 6, [2982472738, 3390212769, 3339289445, 699037226], 4227344533),
        (42, 4, [735521182, 3707395978, 3290902861, 980519533], 1187328364),
        (42, 6, [3992626376, 2295070780, 140159902, 2199602603], 2536335402),
        (42, 8, [2003468966, 425412085, 2949471254, 588545016], 3288120618),
        (42, 40, [29528072, 316570275, 4263289034, 3709807562], 2694212762),
        (42, 70, [1450432674, 2215092199, 1110357066, 153429126], 992116502),
        (42, 700, [2459043005, 2987634822, 3760698000, 2966968774], 4081334060),
        (u32::MAX, 4, [3258260622, 2976084991, 227751652, 537413182], 3453504715),
        (u32::MAX, 1024, [1590750855, 2218016419, 3764631079, 445895810], 167154314),
    ];

    #[test]
    fn keys_are_those_of_the_cpp_standard_library() {
        for (seed, count, [a, b, c, last], folded) in ROWS {
            let mut keys = vec![0; count];
            fill(seed, &mut keys);
            assert_eq!((keys[0], keys[1], keys[2], keys[count - 1]), (a, b, c, last), "seed {seed}, {count} keys");
            assert_eq!(keys.iter().fold(0u32, |h, &key| h.wrapping_mul(31).wrapping_add(key)), folded);
            assert!(count != 4 || keys == four(seed));
        }
    }
}

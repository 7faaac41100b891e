pub fn default_seed(_: &[(u32, u32)]) -> u32 {
    0
}

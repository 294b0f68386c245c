//! Chance that repeats: the same seed, the same run.

/// A small generator (xorshift64*). A test prints its seed when it fails.
#[derive(Debug, Clone)]
pub struct Seed(u64);

impl Seed {
    /// The seed of this run: `TOOLHOST_SEED`, or a fixed one.
    pub fn of_this_run() -> Self {
        let given = std::env::var("TOOLHOST_SEED").ok().and_then(|text| text.parse().ok());
        Self::new(given.unwrap_or(20_260_728))
    }

    pub fn new(seed: u64) -> Self {
        Self(seed.max(1))
    }

    pub fn value(&self) -> u64 {
        self.0
    }

    /// A number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % end.max(1)
    }
}

/// How many rounds of something this run has: what the variable says, or so many.
pub fn rounds(variable: &str, usual: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

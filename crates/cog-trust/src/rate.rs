/// How many of a number of cases were right: `right` of `cases`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Rate {
    right: u64,
    cases: u64,
}

impl Rate {
    /// Returns the rate `right` of `cases`, or `None` if more are right than there are cases.
    pub fn new(right: u64, cases: u64) -> Option<Self> {
        (right <= cases).then_some(Self { right, cases })
    }

    /// Returns the number of cases that were right.
    pub fn right(self) -> u64 {
        self.right
    }

    /// Returns the number of cases.
    pub fn cases(self) -> u64 {
        self.cases
    }

    /// Returns the share of right cases, from 0 to 1. No cases have no share.
    pub fn share(self) -> Option<f64> {
        (self.cases > 0).then(|| self.right as f64 / self.cases as f64)
    }
}

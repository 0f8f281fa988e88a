/// The index of a schema in the graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Id(pub(super) u32);

impl Id {
    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }
}

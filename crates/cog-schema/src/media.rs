use cog_json::{Node, Path};

use crate::contract::Contract;
use crate::shape::{Interest, Shape, Trail, Visit};

impl Contract {
    /// Whether the input schema has a place for media at all.
    pub fn takes_media(&self) -> bool {
        self.input.as_ref().is_some_and(|part| self.shapes.sees(part.shape, Interest::MEDIA))
    }

    /// Where media stand in an input that has been checked, in the order of the input (supplement R14); paths
    /// start at `input`.
    pub fn media_paths(&self, input: Node<'_>) -> Vec<Path> {
        let mut walk = MediaWalk { paths: Vec::new() };
        if let Some(part) = &self.input {
            self.shapes.walk(&[part.shape], input, &Trail::root("input"), &mut walk);
        }
        walk.paths
    }
}

struct MediaWalk {
    paths: Vec<Path>,
}

impl Visit for MediaWalk {
    fn interest(&self) -> Interest {
        Interest::MEDIA
    }

    fn value(&mut self, shape: &Shape, node: Node<'_>, trail: &Trail<'_>) {
        if shape.is_media && node.is_object() {
            self.paths.push(trail.path());
            self.paths.dedup();
        }
    }

    fn unnamed(&mut self, _member: Node<'_>, _trail: &Trail<'_>) {}
}

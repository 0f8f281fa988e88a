use cog_json::{Node, Path};

use crate::contract::Contract;
use crate::shape::{Interest, Shape, Visit};

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
            let mut path = Path::root();
            path.push_key("input");
            self.shapes.walk(&[part.shape], input, &mut path, &mut walk);
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

    fn value(&mut self, shape: &Shape, node: Node<'_>, path: &Path) {
        if shape.is_media && node.is_object() && self.paths.last() != Some(path) {
            self.paths.push(path.clone());
        }
    }

    fn unnamed(&mut self, _member: Node<'_>, _path: &Path) {}
}

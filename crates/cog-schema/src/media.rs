use cog_json::{Node, Path};

use crate::contract::Contract;
use crate::shape::{Id, PathStack, SchemaNode, Visit, WalkFilter};

/// A field of the input that takes a medium, or a list of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MediaField<'a> {
    /// The field.
    pub name: &'a str,
    /// Whether it takes several.
    pub is_list: bool,
}

impl Contract {
    /// The fields of the input itself that take media, in the order of the schema; those further in are not among
    /// them.
    pub fn media_fields(&self) -> Vec<MediaField<'_>> {
        let mut fields: Vec<MediaField<'_>> = Vec::new();
        let Some(input) = &self.input else { return fields };
        for (name, id) in self.shapes.possible(input.shape).flat_map(SchemaNode::properties) {
            let items = self.shapes.possible(id).filter_map(SchemaNode::list_items);
            let is_list = items.into_iter().any(|item| self.is_medium(item));
            if (is_list || self.is_medium(id)) && fields.iter().all(|field| field.name != name) {
                fields.push(MediaField { name, is_list });
            }
        }
        fields
    }

    fn is_medium(&self, id: Id) -> bool {
        self.shapes.possible(id).any(|shape| shape.is_media)
    }

    /// Whether the input schema has a place for media at all.
    pub fn takes_media(&self) -> bool {
        self.input.as_ref().is_some_and(|part| self.shapes.sees(part.shape, WalkFilter::MEDIA))
    }

    /// Where media stand in an input that has been checked, in the order of the input (ruling R14); paths
    /// start at `input`.
    pub fn media_paths(&self, input: Node<'_>) -> Vec<Path> {
        let mut walk = MediaWalk { paths: Vec::new() };
        if let Some(part) = &self.input {
            self.shapes.walk(&[part.shape], input, &PathStack::root("input"), &mut walk);
        }
        walk.paths
    }
}

struct MediaWalk {
    paths: Vec<Path>,
}

impl Visit for MediaWalk {
    fn filter(&self) -> WalkFilter {
        WalkFilter::MEDIA
    }

    fn value(&mut self, shape: &SchemaNode, node: Node<'_>, stack: &PathStack<'_>) {
        if shape.is_media && node.is_object() {
            self.paths.push(stack.path());
            self.paths.dedup();
        }
    }

    fn unnamed(&mut self, _member: Node<'_>, _trail: &PathStack<'_>) {}
}

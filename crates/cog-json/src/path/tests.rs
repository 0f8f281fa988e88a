use super::*;

fn path(segments: &[Segment<'_>]) -> Path {
    segments.iter().copied().collect()
}

#[test]
fn displays_paths_as_specified() {
    use Segment::{Index, Key};
    for (segments, text, pointer) in [
        (&[][..], "", ""),
        (
            &[Key("data"), Key("objects"), Index(0), Key("label")],
            "data.objects[0].label",
            "/data/objects/0/label",
        ),
        (&[Key("data"), Key("a b"), Key("c")], r#"data["a b"].c"#, "/data/a b/c"),
        (&[Key("a/b~")], r#"["a/b~"]"#, "/a~1b~0"),
        (&[Key("")], r#"[""]"#, "/"),
        (&[Key("x-y"), Key("-x")], r#"x-y["-x"]"#, "/x-y/-x"),
        (&[Index(3), Index(10)], "[3][10]", "/3/10"),
        (&[Key("_a"), Key("$b1"), Key("1c")], r#"_a.$b1["1c"]"#, "/_a/$b1/1c"),
        (&[Key("say \"é\\\n\"")], "[\"say \\\"é\\\\\\n\\\"\"]", "/say \"é\\\n\""),
    ] {
        let path = path(segments);
        assert_eq!(path.to_string(), text);
        assert_eq!(path.pointer(), pointer);
        assert_eq!(text.parse::<Path>().as_ref(), Ok(&path));
    }
}

#[test]
fn refuses_text_that_is_not_a_path() {
    for text in [
        ".a", "a.", "a..b", "a[", "a[-1]", "a[01]", "a[+1]", "a[x]", "a b", "a[\"x]", "a[\"x\"", "[\"\\\"]",
        "é",
    ] {
        assert!(text.parse::<Path>().is_err(), "{text}");
    }
}

#[test]
fn pop_removes_the_last_step() {
    let mut path = Path::root();
    path.push_key("data");
    let data = path.clone();
    path.push_index(2);
    path.push_key("x");
    assert!(path.starts_with(&data) && !data.starts_with(&path));
    assert_eq!(path.last(), Some(Segment::Key("x")));
    path.pop();
    path.pop();
    assert_eq!(path, data);
    path.pop();
    path.pop();
    assert!(path.is_root());
}

#[test]
fn key_is_not_a_prefix_of_a_longer_key() {
    let (short, long): (Path, Path) = ("ab".parse().unwrap(), "abc.d".parse().unwrap());
    assert!(!long.starts_with(&short));
}

#[test]
fn steps_are_counted_from_the_root() {
    let mut path: Path = "data[2].x".parse().unwrap();
    assert_eq!((path.depth(), path.first(), path.is_root()), (3, Some(Segment::Key("data")), false));
    assert_eq!(format!("{path:?}"), "\"data[2].x\"");
    path.clear();
    assert_eq!((path.depth(), path.first(), &path), (0, None, &Path::root()));
}

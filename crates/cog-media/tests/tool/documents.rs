//! The forms of PDF that producers write: fonts, damaged content, encryption, page trees, placeholders.

use std::io::Write as _;

use cog_media::{MediaDeclaration, MediaRules, PageText, Placeholder, check};
use flate2::{Compression, write::ZlibEncoder};
use md5::{Digest as _, Md5};

use crate::{
    files::{stored, tool, wait},
    samples::{document, pdf},
};

pub(crate) const TESTS: &[(&str, fn())] = tests![
    codes_have_the_length_that_the_encoding_says,
    encodings_of_standard_maps_are_read,
    maps_to_unicode_are_read_however_they_are_written,
    font_without_a_complete_map_is_read_by_its_encoding,
    glyphs_without_a_meaning_are_no_text,
    content_is_read_on_after_a_damaged_operation,
    document_with_an_empty_password_is_read,
    page_trees_of_other_forms_are_read,
    filters_have_abbreviations,
    pages_that_stand_for_something_else_are_noted,
];

fn pages(bytes: &[u8]) -> Vec<PageText> {
    wait(tool().text(&stored(bytes))).unwrap()
}

fn text(bytes: &[u8]) -> String {
    pages(bytes).remove(0).text
}

fn stream(entries: &str, content: &str) -> String {
    format!("<< {entries} /Length {} >>\nstream\n{content}\nendstream", content.len())
}

/// Returns a PDF with one page that shows this operand of `Tj` in this font, and more objects from the fifth on.
fn showing(font: &str, shown: &str, more: &[String]) -> Vec<u8> {
    let mut objects = vec![
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        "<< /Type /Pages /Kids [3 0 R] /Count 1 /MediaBox [0 0 612 792] >>".to_owned(),
        format!(
            "<< /Type /Page /Parent 2 0 R /Contents 4 0 R /Resources << /Font << /F1 << /Type /Font {font} >> >> >> >>"
        ),
        stream("", &format!("BT /F1 12 Tf 72 720 Td {shown} Tj ET")),
    ];
    objects.extend_from_slice(more);
    document(&objects)
}

/// Returns a map to Unicode with this code space, which maps these codes to `7` and to an emoji.
fn map(space: &str, codes: [&str; 2]) -> String {
    let text = format!(
        "/CIDInit /ProcSet findresource begin\n12 dict begin\nbegincmap\n/CMapName /Test def\n/CMapType 2 def\n\
         1 begincodespacerange\n{space}\nendcodespacerange\n2 beginbfchar\n<{}> <0037>\n<{}> <D83DDE00>\n\
         endbfchar\nendcmap\nCMapName currentdict /CMap defineresource pop\nend\nend\n",
        codes[0], codes[1]
    );
    stream("", &text)
}

const COMPOSITE: &str = "/Subtype /Type0 /BaseFont /Test /DescendantFonts [<< /Type /Font /Subtype /CIDFontType2 \
     /BaseFont /Test /CIDSystemInfo << /Registry (Adobe) /Ordering (Identity) /Supplement 0 >> \
     /FontDescriptor << /Type /FontDescriptor /FontName /Test /Flags 4 >> >>]";

fn codes_have_the_length_that_the_encoding_says() {
    for (encoding, space, codes, shown, expected) in [
        ("/Identity-H", "<0000> <FFFF>", ["0014", "0105"], "<001401050014>", "7😀7"),
        // The map declares less than it contains, or another length.
        ("/Identity-H", "<0003> <0003>", ["0014", "0105"], "<001401050014>", "7😀7"),
        ("/Identity-V", "<00> <FF>", ["0014", "0105"], "<00140105>", "7😀"),
    ] {
        let font = format!("{COMPOSITE} /Encoding {encoding} /ToUnicode 5 0 R");
        let bytes = showing(&font, shown, &[map(space, codes)]);
        assert_eq!(text(&bytes).split_whitespace().collect::<String>(), expected, "{encoding} {space}");
    }
    let encoding = "/CIDInit /ProcSet findresource begin begincmap /CMapName /Own def \
        1 begincodespacerange <00> <FF> endcodespacerange 1 begincidrange <00> <FF> 0 endcidrange endcmap";
    let font = format!("{COMPOSITE} /Encoding 6 0 R /ToUnicode 5 0 R");
    let own = stream("/Type /CMap /CMapName /Own", encoding);
    let bytes = showing(&font, "<141514>", &[map("<00> <FF>", ["14", "15"]), own]);
    assert_eq!(text(&bytes), "7😀7");
}

fn encodings_of_standard_maps_are_read() {
    let font = |encoding: &str, ordering: &str| {
        format!(
            "/Subtype /Type0 /BaseFont /Song /Encoding /{encoding} /DescendantFonts [<< /Type /Font \
             /Subtype /CIDFontType0 /BaseFont /Song /CIDSystemInfo << /Registry (Adobe) /Ordering ({ordering}) \
             /Supplement 2 >> >>]"
        )
    };
    for (encoding, ordering, shown, expected) in [
        ("UniGB-UCS2-H", "GB1", "<4F60597D0020004100E9>", "你好 Aé"),
        ("GBK-EUC-H", "GB1", "<C4E3BAC320312E35>", "你好 1.5"),
        ("90ms-RKSJ-H", "Japan1", "<8D878C76313233897E>", "合計123円"),
        ("KSCms-UHC-H", "Korea1", "<C7D1B1DB>", "한글"),
        ("ETen-B5-H", "CNS1", "<A4A4A4E5>", "中文"),
    ] {
        let text = text(&showing(&font(encoding, ordering), shown, &[]));
        assert_eq!(text, expected, "{encoding}");
    }
}

fn maps_to_unicode_are_read_however_they_are_written() {
    let usual = map("<0000> <FFFF>", ["0014", "0105"]);
    let font = format!("{COMPOSITE} /Encoding /Identity-H /ToUnicode 5 0 R");
    for (from, to) in [
        ("/CMapName /Test def", "/CMapName //usr/share/fonts/Test def"),
        ("/CMapName /Test def", "/CMapName /A name with spaces def"),
        ("/CMapName /Test def", "/CMapName\n/Test\ndef"),
        ("/CMapName /Test def", "/CIDSystemInfo << Registry (Adobe) /Ordering (UCS) >> def"),
        ("/CMapType 2 def", "/CMapType 2"),
        ("CMapName currentdict /CMap defineresource pop\nend\nend\n", ""),
        ("2 beginbfchar", "beginbfchar"),
        ("<0037>\n", "<0037>"),
    ] {
        // The declared length does not fit any more, and readers do not depend on it.
        let changed = usual.replace(from, to);
        assert_ne!(changed, usual, "{from}");
        assert_eq!(text(&showing(&font, "<00140105>", &[changed])), "7😀", "{to}");
    }
}

fn font_without_a_complete_map_is_read_by_its_encoding() {
    let space_only =
        stream("", "1 begincodespacerange <00> <FF> endcodespacerange 1 beginbfchar <20> <0020> endbfchar");
    for encoding in ["", "/Encoding /WinAnsiEncoding", "/Encoding << /Differences [65 /A /B] >>"] {
        let font = format!("/Subtype /Type1 /BaseFont /Helvetica {encoding} /ToUnicode 5 0 R");
        assert_eq!(
            text(&showing(&font, "(Total 7,723 AB)", std::slice::from_ref(&space_only))),
            "Total 7,723 AB",
            "{encoding}"
        );
    }
    let names = "/Encoding << /Differences [65 /.notdef /udieresis /.notdef /eacute] >>";
    let font = format!("/Subtype /Type1 /BaseFont /Helvetica {names}");
    assert_eq!(text(&showing(&font, "(BD and more words)", &[])), "üé and more words");
}

fn glyphs_without_a_meaning_are_no_text() {
    let drawn = stream("", "500 0 0 0 500 500 d1 0 0 500 500 re f");
    let type3 = "/Subtype /Type3 /FontBBox [0 0 500 500] /FontMatrix [0.001 0 0 0.001 0 0] /FirstChar 1 \
        /LastChar 3 /Widths [500 500 500] /CharProcs << /x1 5 0 R /x2 5 0 R /x3 5 0 R >> \
        /Encoding << /Differences [1 /x1 /x2 /x3] >> /Resources << >>";
    assert_eq!(text(&showing(type3, "<010203020301>", &[drawn])), "");
    let composite = format!("{COMPOSITE} /Encoding /Identity-H");
    assert_eq!(text(&showing(&composite, "<001401050014>", &[])), "");
}

fn content_is_read_on_after_a_damaged_operation() {
    let page = "BT /F1 12 Tf 14 TL 72 720 Td (First) Tj T* DAMAGED (Second) Tj T* (Third) Tj ET";
    for damaged in [
        "1 2 3 xyz",
        ") Tj",
        "] TJ",
        "(a) 5 Tf",
        "<< /K (v) >> >> BDC",
        "1 0 re",
        "/Name cm",
        "<zz> Tj",
        "} {",
    ] {
        let content = page.replace("DAMAGED", damaged);
        let one = String::from_utf8(pdf(&["x"])).unwrap();
        let bytes = one.replace("BT /F1 12 Tf 14 TL 72 720 Td (x) Tj T* ET", &content);
        let text = text(bytes.as_bytes());
        assert!(text.contains("First") && text.ends_with("Third"), "{damaged}: {text}");
    }
}

/// Encrypts with RC4, as old producers do.
fn rc4(key: &[u8], bytes: &[u8]) -> Vec<u8> {
    let mut state: Vec<u8> = (0..=255).collect();
    let mut at = 0_usize;
    for index in 0..256 {
        at = (at + usize::from(state[index]) + usize::from(key[index % key.len()])) % 256;
        state.swap(index, at);
    }
    let (mut first, mut second) = (0_usize, 0_usize);
    let encrypt = |byte: &u8| {
        first = (first + 1) % 256;
        second = (second + usize::from(state[first])) % 256;
        state.swap(first, second);
        byte ^ state[(usize::from(state[first]) + usize::from(state[second])) % 256]
    };
    bytes.iter().map(encrypt).collect()
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02X}")).collect()
}

fn find(bytes: &[u8], part: &[u8]) -> usize {
    bytes.windows(part.len()).position(|window| window == part).unwrap()
}

fn document_with_an_empty_password_is_read() {
    const PADDING: &[u8; 32] = b"\x28\xBF\x4E\x5E\x4E\x75\x8A\x41\x64\x00\x4E\x56\xFF\xFA\x01\x08\
        \x2E\x2E\x00\xB6\xD0\x68\x3E\x80\x2F\x0C\xA9\xFE\x64\x53\x69\x7A";
    let content = b"BT /F1 12 Tf 72 720 Td (Hello there) Tj ET";
    let plain = showing("/Subtype /Type1 /BaseFont /Helvetica", "(Hello there)", &[]);
    for identifier in [None, Some(&b"0123456789abcdef"[..])] {
        let id = identifier.unwrap_or_default();
        let owner = [7; 32];
        let key = &Md5::digest([&PADDING[..], &owner, &(-4_i32).to_le_bytes(), id].concat())[..5];
        // The content is the fourth object.
        let content_key = &Md5::digest([key, &[4, 0, 0, 0, 0]].concat())[..10];
        let mut bytes = plain.clone();
        let at = find(&bytes, content);
        bytes.splice(at..at + content.len(), rc4(content_key, content));
        let ids = identifier.map(|id| format!("/ID [<{0}> <{0}>]", hexadecimal(id))).unwrap_or_default();
        let entry = format!(
            " /Encrypt << /Filter /Standard /V 1 /R 2 /P -4 /O <{}> /U <{}> >> {ids} ",
            hexadecimal(&owner),
            hexadecimal(&rc4(key, PADDING)),
        );
        let at = find(&bytes, b"trailer\n<<") + b"trailer\n<<".len();
        bytes.splice(at..at, entry.into_bytes());
        assert_eq!(text(&bytes), "Hello there", "{identifier:?}");
        // Another key needs a password.
        let other = hexadecimal(&rc4(key, PADDING));
        let at = find(&bytes, other.as_bytes());
        bytes[at] = if bytes[at] == b'0' { b'1' } else { b'0' };
        let outcome = wait(tool().text(&stored(&bytes)));
        let refused = crate::files::refusal(outcome);
        assert_eq!(refused, "E1013 unreadable application/pdf: it is encrypted with a password");
    }
}

fn page_trees_of_other_forms_are_read() {
    let font = "/Resources << /Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >>";
    let content = stream("", "BT /F1 12 Tf 72 720 Td (Hello there) Tj ET");
    let page = format!("<< /Type /Page /Contents 3 0 R {font} /MediaBox [0 0 612 792] >>");
    let catalog = "<< /Type /Catalog /Pages 2 0 R >>".to_owned();
    let direct = format!("<< /Type /Pages /Kids [{page}] /Count 1 >>");
    let untyped = format!("<< /Kids [4 0 R] /Count 1 {font} >>");
    let mut lengths: Vec<(&str, Vec<u8>)> = vec![
        ("direct", document(&[catalog.clone(), direct, content.clone()])),
        (
            "untyped",
            document(&[catalog.clone(), untyped, content.clone(), "<< /Contents 3 0 R >>".to_owned()]),
        ),
        ("a page instead of a tree", document(&[catalog, page, content])),
    ];
    let one = pdf(&["Hello there"]);
    lengths.push(("a late header", [&b"% a mail\n".repeat(200)[..], &one].concat()));
    let table = find(&one, b"\nxref") + 1;
    lengths.push(("no table", one[..table].to_vec()));
    for (form, bytes) in lengths {
        assert_eq!(text(&bytes), "Hello there", "{form}");
    }
}

fn filters_have_abbreviations() {
    let content = b"BT /F1 12 Tf 72 720 Td (Hello there) Tj ET";
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(content).unwrap();
    let compressed = hexadecimal(&encoder.finish().unwrap());
    for (filter, data) in [
        ("/AHx", hexadecimal(content)),
        ("[/AHx /Fl]", compressed.clone()),
        ("[/ASCIIHexDecode /FlateDecode]", compressed),
    ] {
        let font = "/Resources << /Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >>";
        let objects = [
            "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
            "<< /Type /Pages /Kids [3 0 R] /Count 1 >>".to_owned(),
            format!("<< /Type /Page /Parent 2 0 R /Contents 4 0 R {font} >>"),
            stream(&format!("/Filter {filter}"), &format!("{data}>")),
        ];
        assert_eq!(text(&document(&objects)), "Hello there", "{filter}");
    }
}

fn pages_that_stand_for_something_else_are_noted() {
    let placeholder = |catalog: &str, page: &str| {
        let objects = [
            format!("<< /Type /Catalog /Pages 2 0 R {catalog} >>"),
            "<< /Type /Pages /Kids [3 0 R] /Count 1 >>".to_owned(),
            format!("<< /Type /Page /Parent 2 0 R {page} >>"),
            stream("", "<xdp/>"),
        ];
        let bytes = stored(&document(&objects));
        let media = wait(check(bytes, &MediaDeclaration::default(), &MediaRules::default(), Some(&tool())));
        media.unwrap().info().placeholder
    };
    let form = "/AcroForm << /XFA 4 0 R /Fields [] >>";
    let field = "/Annots [<< /Type /Annot /Subtype /Widget /FT /Tx /T (a) /Rect [0 0 9 9] >>]";
    assert_eq!(placeholder(form, ""), Some(Placeholder::XfaForm));
    assert_eq!(placeholder(form, field), None, "a static form");
    assert_eq!(placeholder(&format!("{form} /NeedsRendering true"), field), Some(Placeholder::XfaForm));
    assert_eq!(placeholder("/AcroForm << /Fields [] >>", ""), None);
    assert_eq!(placeholder("/Collection << /View /D >>", ""), Some(Placeholder::Portfolio));
}

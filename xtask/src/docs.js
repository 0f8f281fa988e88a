// What mdBook's pages lack for keyboards and screen readers.
const label = document.getElementById("mdbook-sidebar-toggle");
const box = document.getElementById("mdbook-sidebar-toggle-anchor");
const button = document.createElement("button");
button.type = "button";
button.className = label.className;
button.title = label.title;
button.append(...label.childNodes);
button.addEventListener("click", () => box.click());
const tell = () => button.setAttribute("aria-expanded", box.checked);
box.addEventListener("change", tell);
tell();
label.replaceWith(button);

document.getElementById("mdbook-menu-bar").setAttribute("role", "banner");
document.querySelectorAll("pre > code, .table-wrapper").forEach((element) => { element.tabIndex = 0; });

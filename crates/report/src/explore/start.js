// Begins with the figures that hold their data.

const all = [];
const adopt = (figure) => {
  figure.group = groupOf(figure);
  all.push(figure);
  zoomable(figure);
  readable(figure);
};
document.body.append(spoken);

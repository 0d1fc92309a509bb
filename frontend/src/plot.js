// Draws time series on a canvas: https://github.com/leeoniya/uPlot
export { default as Plot } from "uplot";

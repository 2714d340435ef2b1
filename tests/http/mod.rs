mod bounds;
mod lights;

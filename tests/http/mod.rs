mod bounds;
mod class;
mod lights;

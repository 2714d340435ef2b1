-- For the database's container, when it is made: SHOW ENGINE INNODB STATUS, which the lessons on deadlocks show, needs PROCESS.
GRANT PROCESS ON *.* TO 'oversell'@'%';
